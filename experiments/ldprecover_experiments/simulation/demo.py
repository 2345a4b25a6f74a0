"""A demo: one poisoned round on a running server, from its opening to its recoveries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from ldprecover import RoundParameters
from ldprecover.recovery import METHODS, RecoveryRequest
from ldprecover_attacker import Attack, Campaign, make_attack
from ldprecover_client import Client, Population, RoundStatus
from ldprecover_experiments.simulation.comparison import ESTIMATES, Comparison
from ldprecover_experiments.simulation.demo_settings import DemoSettings
from ldprecover_experiments.simulation.parameters import draw_targets
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound, Targets, Vector

Stage = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]
"""From the title of a stage to a context manager whose value reports progress (done, total)."""


def no_progress(title: str) -> AbstractContextManager[Callable[[int, int], None]]:
    """Report no progress."""
    return nullcontext(lambda done, total: None)


class Demo:
    """A demo whose settings have been checked.

    Raises DatasetError and ParameterError.

        Demo(DemoSettings(users=1000)).on(url, key).mse
    """

    def __init__(self, settings: DemoSettings) -> None:
        self.settings = settings
        self.malicious_users = settings.malicious_users
        dataset = settings.load()
        items = dataset.items
        self.population = Population.of(dataset, settings.users, settings.seed)
        self.parameters = RoundParameters(settings.protocol, settings.epsilon, items)
        self.targets = (
            draw_targets(len(items), settings.targets, settings.seed) if settings.targeted else None
        )
        model = settings.model if settings.modelled else None
        self.attack: Attack = make_attack(
            settings.attack, model=model, targets=self.targets
        ).resolve(items)
        self.attack.reports(
            self.parameters.oracle, 1, np.random.default_rng(0)
        )  # raises for a protocol it is not for
        for users in (settings.users, self.malicious_users):
            self.parameters.oracle.wire.check_users(users)
        RecoveryRequest("ldprecover", eta=settings.eta)  # raises for an eta outside its range

    def on(
        self, url: str, key: str, stage: Stage = no_progress, *, name: str = "demo"
    ) -> Comparison:
        """Play on the server at `url` with its admin key; return the estimates.

        Raises ClientError.
        """
        with Client(url, key=key) as server:
            return self.play(server, key, self.open_round(server, name).id, stage)

    def play(self, server: Client, key: str, round: str, stage: Stage = no_progress) -> Comparison:
        """Have all users report to an open round; return the estimates. Raises ClientError."""
        self.report_genuine(server.url, key, round, stage)
        genuine = np.asarray(server.frequencies(round).frequencies)
        self.report_malicious(server.url, key, round, stage)
        return self.compared(server, round, genuine)

    def open_round(self, server: Client, name: str | None = None) -> RoundStatus:
        """Open the round."""
        p = self.parameters
        return server.open_round(
            name=name, protocol=p.protocol, epsilon=p.epsilon, items=p.items, **p.own
        )

    def report_genuine(self, url: str, key: str | None, round: str, stage: Stage) -> int:
        """Have the genuine users report; return the number of accepted reports."""
        with stage("genuine users report") as progress:
            return self.population.report_to(url, round, key=key, progress=progress).accepted

    def report_malicious(self, url: str, key: str | None, round: str, stage: Stage) -> int:
        """Have the malicious users report; return the number of accepted reports."""
        m, seed = self.malicious_users, self.settings.seed
        if not m:
            return 0
        with stage("malicious users report") as progress:
            return Campaign(url, round, self.attack, m, seed, key=key).run(progress).accepted

    def genuine_estimate(self) -> Vector:
        """Return f~_X~ without a server, from the same reports, which the seed determines."""
        return PoisonedRound.clean(self.parameters.oracle, self.population).f_genuine

    def compared(self, server: Client, round: str, genuine: Vector) -> Comparison:
        """Return the estimates of the poisoned round and the server's recoveries."""

        def recovered(method: str, targets: Targets = ()) -> Vector:
            eta = self.settings.eta
            return server.recover(round, method=method, eta=eta, targets=list(targets)).recovered

        fits = METHODS["unmix"].unfit(self.parameters.oracle) is None
        columns = (
            genuine,
            np.asarray(server.frequencies(round).frequencies),
            recovered("norm-sub"),
            recovered("ldprecover"),
            recovered("unmix") if fits else None,
            recovered("ldprecover", self.targets) if self.targets else None,
        )
        return Comparison(
            self.settings,
            self.parameters.items,
            self.targets,
            self.population.frequencies,
            dict(zip(ESTIMATES, columns, strict=True)),
        )

"""Playing a demo: one round on a running server, from opening it to its last recovery. Draws nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ldprecover import Estimates, RoundParameters, Tally
from ldprecover.recovery.base import Knowledge
from ldprecover_attacker import Attack, Campaign, make_attack
from ldprecover_cli.attackers import draw_targets
from ldprecover_cli.demo.figures import ESTIMATES, Figures, Vector
from ldprecover_cli.demo.settings import DemoSettings
from ldprecover_client import Dataset, Population, RoundStatus, Server, load_dataset

__all__ = ["Play", "Stage", "unseen"]

Stage = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]
"""Shows how far a stage of the demo is: its title in, a context manager of "done, of all" out."""


def unseen(title: str) -> AbstractContextManager[Callable[[int, int], None]]:
    """Show nothing of a stage."""
    return nullcontext(lambda done, total: None)


class Play:
    """A demo that is ready to be played: all of its settings have been checked, and no server was needed.

    Raises UsageError, DatasetError and ParameterError.
    """

    def __init__(self, settings: DemoSettings) -> None:
        self.settings = settings
        self.dataset: Dataset = load_dataset(settings.dataset, settings.column)
        items = self.dataset.items
        self.population = Population.of(self.dataset, settings.users, settings.seed)
        self.parameters = RoundParameters(settings.protocol, settings.epsilon, items)
        self.targets = draw_targets(len(items), settings.targets, settings.seed) if settings.targeted else None
        model = settings.model if settings.modelled else None
        self.attack: Attack = make_attack(settings.attack, model=model, targets=self.targets).resolve(items)
        self.attack.reports(self.parameters.oracle, 1, np.random.default_rng(0))  # refuses a protocol it is not for
        Knowledge(self.parameters.oracle, np.zeros(len(items)), settings.eta)  # refuses an eta outside its range

    def on(self, url: str, key: str, stage: Stage, *, name: str = "demo") -> Figures:
        """Play on the server at `url`, whose admin key this is, and return the figures. Raises ClientError."""
        with Server(url, key=key) as server:
            round_ = self.open_round(server, name)
            self.report_genuine(url, key, round_.id, stage)
            genuine = np.asarray(server.frequencies(round_.id)["frequencies"], dtype=np.float64)
            self.report_malicious(url, key, round_.id, stage)
            return self.figures(server, round_.id, genuine)

    def open_round(self, server: Server, name: str | None = None) -> RoundStatus:
        """Open the round."""
        parameters = self.parameters
        return server.open_round(
            name=name,
            protocol=parameters.protocol,
            epsilon=parameters.epsilon,
            items=parameters.items,
            **parameters.own,
        )

    def report_genuine(self, url: str, key: str | None, round: str, stage: Stage) -> int:
        """Have the genuine users report; return how many reports were accepted."""
        with stage("genuine users report") as progress:
            return self.population.report_to(url, round, key=key, progress=progress)

    def report_malicious(self, url: str, key: str | None, round: str, stage: Stage) -> int:
        """Have the malicious users report; return how many reports were accepted."""
        m, seed = self.settings.malicious_users, self.settings.seed
        if not m:
            return 0
        with stage("malicious users report") as progress:
            return Campaign(url, round, self.attack, m, seed, key=key).run(progress).accepted

    def genuine_estimate(self) -> Vector:
        """Estimate f~_X~ without a server: the users' seed gives their reports again."""
        oracle = self.parameters.oracle
        return Estimates.of(oracle, Tally.of(oracle, self.population.reports(oracle))).frequencies

    def figures(self, server: Server, round: str, genuine: Vector) -> Figures:
        """Ask for what the poisoned round says and for each recovery of it."""
        poisoned = server.frequencies(round)["frequencies"]

        def recovered(method: str, targets: tuple[int, ...] = ()) -> Any:
            answer = server.recover(round, method=method, eta=self.settings.eta, targets=list(targets))
            return answer["recovered"]

        known = recovered("ldprecover", self.targets) if self.targets else None
        columns = (genuine, poisoned, recovered("norm-sub"), recovered("ldprecover"), known)
        estimates: dict[str, Vector | None] = {
            name: None if column is None else np.asarray(column, dtype=np.float64)
            for name, column in zip(ESTIMATES, columns, strict=True)
        }
        return Figures(self.settings, self.parameters.items, self.targets, self.population.frequencies, estimates)

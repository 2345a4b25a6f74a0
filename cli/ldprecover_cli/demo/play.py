"""Playing a demo: one round on a running server, from opening it to its last recovery. Draws nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ldprecover import RoundParameters
from ldprecover.recovery.base import Knowledge
from ldprecover_attacker import Attack, Campaign, make_attack
from ldprecover_cli.attackers import draw_targets
from ldprecover_cli.demo.figures import ESTIMATES, Figures, Vector
from ldprecover_cli.demo.settings import DemoSettings
from ldprecover_client import Dataset, Population, Server, load_dataset

__all__ = ["Play", "Stage"]

Stage = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]
"""Shows how far a stage of the demo is: its title in, a context manager of "done, of all" out."""


class Play:
    """A demo that is ready to be played: all of its settings have been checked, and no server was needed.

    Raises UsageError, DatasetError and ParameterError.
    """

    def __init__(self, settings: DemoSettings) -> None:
        self.settings = settings
        self.dataset: Dataset = load_dataset(settings.dataset, settings.column)
        items = self.dataset.items
        self.parameters = RoundParameters(settings.protocol, settings.epsilon, items)
        self.targets = draw_targets(len(items), settings.targets, settings.seed) if settings.targeted else None
        self.attack: Attack = make_attack(settings.attack, model=settings.model, targets=self.targets).resolve(items)
        Knowledge(self.parameters.oracle, np.zeros(len(items)), settings.eta)  # refuses an eta outside its range

    def on(self, url: str, key: str, stage: Stage, *, name: str = "demo") -> Figures:
        """Play on the server at `url`, whose admin key this is, and return the figures. Raises ClientError."""
        settings = self.settings
        population = Population.of(self.dataset, settings.users, settings.seed)
        with Server(url, key=key) as server:
            round_ = server.open_round(
                name=name,
                protocol=settings.protocol,
                epsilon=settings.epsilon,
                items=self.parameters.items,
                hash_range=self.parameters.hash_range,
            )
            with stage("genuine users report") as progress:
                population.report_to(url, round_.id, progress=progress)
            genuine = server.frequencies(round_.id)["frequencies"]
            with stage("malicious users report") as progress:
                Campaign(url, round_.id, self.attack, settings.malicious_users, settings.seed).run(progress)
            poisoned = server.frequencies(round_.id)["frequencies"]

            def recovered(method: str, targets: tuple[int, ...] = ()) -> Any:
                answer = server.recover(round_.id, method=method, eta=settings.eta, targets=list(targets))
                return answer["recovered"]

            known = recovered("ldprecover", self.targets) if self.targets else None
            columns = (genuine, poisoned, recovered("norm-sub"), recovered("ldprecover"), known)
        estimates: dict[str, Vector | None] = {
            name: None if column is None else np.asarray(column, dtype=np.float64)
            for name, column in zip(ESTIMATES, columns, strict=True)
        }
        return Figures(settings, self.parameters.items, self.targets, population.frequencies, estimates)

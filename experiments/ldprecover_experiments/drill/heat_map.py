"""A heat map: the error of projection over that of each method, for every attack."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import fmean
from typing import Any

from ldprecover import ParameterError, frequency_oracle
from ldprecover_client import Dataset
from ldprecover_experiments.drill.drill_round import MAX_BYTES
from ldprecover_experiments.drill.jobs import Job
from ldprecover_experiments.measures import MethodSpec, Outcome
from ldprecover_experiments.parameters import (
    Cell,
    GenuineUsers,
    load_genuine_users,
    malicious_users,
)
from ldprecover_experiments.runs import Work
from ldprecover_experiments.unmixing_evaluation import ATTACKS, attack_on, methods

MAX_MAP_USERS, MAX_TRIALS = 200_000, 10

_BASIS = "norm-sub"
"""The method that the others are compared with: projection on the simplex."""
_FLOOR = "genuine"


@dataclass(frozen=True, eq=False)
class HeatMap:
    """The evaluation's attacks on one data set and protocol, simulated without a server.

    `users` is the number of genuine users, in the data's proportions. Without `reports` counts are
    drawn, and methods that need reports are absent; with them every report is made. Squared errors
    are averaged over `trials` first. Raises ParameterError.
    """

    dataset: Dataset
    protocol: str
    epsilon: float
    users: int
    beta: float
    targets: int
    eta: float
    seed: int
    trials: int
    reports: bool

    def __post_init__(self) -> None:
        d = len(self.dataset.items)
        oracle = frequency_oracle(self.protocol, self.epsilon, d)
        everybody = self.users + malicious_users(self.users, self.beta)
        if not 2 * self.targets < d:  # one of the attacks has twice as many
            raise ParameterError(
                f"targets must be fewer than half of the {d} items, not {self.targets}"
            )
        if not 0 <= self.eta <= 10:
            raise ParameterError(f"eta must be from 0 to 10, not {self.eta:g}")
        if self.reports and everybody * oracle.wire.dtype.itemsize > MAX_BYTES:
            raise ParameterError(
                f"users: their reports would take more than {MAX_BYTES >> 20:,} MiB; take fewer"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as JSON."""
        settings = {name: value for name, value in vars(self).items() if name != "dataset"}
        return {
            "dataset": self.dataset.name,
            **settings,
            "malicious_users": malicious_users(self.users, self.beta),
        }

    @property
    def methods(self) -> list[MethodSpec]:
        """The methods to compare, projection among them."""
        specs = [spec for spec in methods() if spec.eta is None and not spec.history]
        return [spec for spec in specs if self.reports or not spec.reads_reports]

    def cells(self) -> Iterator[tuple[str, Cell]]:
        """Yield the name and first cell of each attack that the protocol has."""
        oracle = frequency_oracle(self.protocol, self.epsilon, len(self.dataset.items))
        for name in ATTACKS:
            pair = attack_on(oracle, name, self.targets)
            if pair is not None:
                text, model = pair
                beta = 0.0 if name == "none" else self.beta
                yield (
                    name,
                    Cell(
                        self.dataset.name, self.protocol, text, model, beta, self.epsilon, self.eta
                    ),
                )

    def play(self, run: Job) -> dict[str, Any]:
        """Return the map as JSON with a row for each attack. Raises CancelledError."""
        specs, cells = self.methods, list(self.cells())
        genuine_users = load_genuine_users(self.dataset, users=self.users, targets=self.targets)
        rows = []
        with run.stage("attacks are played") as progress:
            for done, (name, cell) in enumerate(cells):
                trials = []
                for trial in range(self.trials):
                    progress(done * self.trials + trial, len(cells) * self.trials)
                    trials.append(self._outcomes(replace(cell, trial=trial), genuine_users, specs))
                rows.append(
                    {
                        "attack": name,
                        "played": cell.label.replace("\\", ""),
                        "cells": _cells(trials),
                    }
                )
            progress(len(cells) * self.trials, len(cells) * self.trials)
        columns = list(dict.fromkeys(name for row in rows for name in row["cells"]))
        return {"basis": _BASIS, "methods": columns, "rows": rows}

    def _outcomes(
        self, cell: Cell, genuine_users: GenuineUsers, specs: Sequence[MethodSpec]
    ) -> list[Outcome]:
        try:
            return Work({genuine_users.name: genuine_users}, self.seed, specs).run(cell)
        except ParameterError as error:  # the protocol has no such reports
            reason = " ".join(str(error).split())
            return [Outcome(spec.name, nan, None, None, 0.0, refused=reason) for spec in specs]


def _cells(trials: Sequence[Sequence[Outcome]]) -> dict[str, dict[str, Any]]:
    """Return for each method its mean error, the basis' error over it, and its refusal."""
    by_method: dict[str, list[Outcome]] = {}
    for outcome in (one for outcomes in trials for one in outcomes if one.method != _FLOOR):
        by_method.setdefault(outcome.method, []).append(outcome)
    mse = {
        name: fmean(one.mse for one in outcomes) for name, outcomes in by_method.items()
    }  # NaN where one is
    basis = mse.get(_BASIS, nan)
    cells = {}
    for name, outcomes in by_method.items():
        error, refused = mse[name], next((one.refused for one in outcomes if one.refused), None)
        times = basis / error if error > 0 and basis > 0 else nan
        cells[name] = {"mse": _known(error), "times": _known(times), "refused": refused}
    return cells


def _known(number: float) -> float | None:
    return None if isnan(number) else number

"""A heat map: the error of projection over that of each method, for every attack."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isclose, isnan, nan
from statistics import fmean, geometric_mean
from typing import Any

from ldprecover import ParameterError, frequency_oracle
from ldprecover_client import Dataset
from ldprecover_experiments.drill.drill_round import MAX_BYTES
from ldprecover_experiments.drill.jobs import Job
from ldprecover_experiments.drill.score import HELPS
from ldprecover_experiments.drill.words import EVALUATED_ATTACKS, method_words, sentence, times
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
_SAME = 1e-3
"""Relative difference up to which errors count as equal."""


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

    @property
    def steps(self) -> list[str]:
        """The titles of the stages that `play` reports."""
        return [EVALUATED_ATTACKS[name] for name, _ in self.cells()]

    def play(self, run: Job) -> dict[str, Any]:
        """Return the map as JSON with a row for each attack. Raises CancelledError."""
        specs = self.methods
        genuine_users = load_genuine_users(self.dataset, users=self.users, targets=self.targets)
        rows = []
        for name, cell in self.cells():
            trials = []
            with run.stage(EVALUATED_ATTACKS[name]) as progress:
                for trial in range(self.trials):
                    progress(trial, self.trials)
                    trials.append(self._outcomes(replace(cell, trial=trial), genuine_users, specs))
            rows.append(
                {
                    "attack": name,
                    "title": EVALUATED_ATTACKS[name],
                    "played": cell.label.replace("\\", ""),
                    "cells": _cells(trials),
                }
            )
        columns = heat_map_columns(rows)
        return {**verdict(rows, columns), "columns": columns, "rows": rows}

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
        cells[name] = {"mse": _none_if_nan(error), "times": _none_if_nan(times), "refused": refused}
    return cells


def heat_map_columns(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the columns, the best on average first; methods of equal errors share one.

    `method` is the key of the cells, `names` are the titles of the methods, and `mean` is the
    geometric mean of the ratios over the attacks that were played, None if one lacks.
    """
    cells = [row["cells"] for row in rows if row["cells"][_BASIS]["mse"] is not None]
    columns: list[dict[str, Any]] = []
    for method in dict.fromkeys(name for each in cells for name in each):
        ratios = [each[method]["times"] for each in cells]
        twins = (
            column
            for column in columns
            if all(_same(each[method]["mse"], each[column["method"]]["mse"]) for each in cells)
        )
        if (twin := next(twins, None)) is not None:
            twin["names"].append(method_words(method))
            continue
        mean = geometric_mean(ratios) if all(ratios) else None
        columns.append({"method": method, "names": [method_words(method)], "mean": mean})
    return sorted(columns, key=lambda column: -(column["mean"] or 0.0))


def _same(error: float | None, other: float | None) -> bool:
    if error is None or other is None:
        return error is other
    return isclose(error, other, rel_tol=_SAME)


def verdict(rows: Sequence[dict[str, Any]], columns: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the best method on average as headline, and its worst attack as detail."""
    best = columns[0]
    if (best["mean"] or 0.0) < HELPS:
        nothing = "No recovery does better than projection alone on average over the attacks."
        return {"headline": nothing, "detail": ""}
    titles = {row["cells"][best["method"]]["times"]: row["title"] for row in rows}
    worst = min(ratio for ratio in titles if ratio is not None)
    return {
        "headline": f"{sentence(best['names'][0])} wins on average over the attacks: "
        f"{times(best['mean'])} times better than projection alone.",
        "detail": f"Its worst case is {times(worst)} times: {titles[worst]}.",
    }


def _none_if_nan(number: float) -> float | None:
    return None if isnan(number) else number

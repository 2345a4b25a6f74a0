"""Means over the trials of a setting."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.measures import MethodOutcome
from ldprecover_experiments.studies.rows import CellRow


@dataclass(frozen=True)
class MeanOutcome:
    """Means over the trials of one method in one setting.

    `mse_sd` is the standard deviation between trials and `mse_se` the standard error of the mean,
    None for one trial.
    """

    trials: int
    mse: float
    mse_sd: float | None
    fg: float | None
    malicious_mse: float | None
    mse_se: float | None

    @classmethod
    def of(cls, outcomes: Sequence[MethodOutcome]) -> "MeanOutcome":
        """Return the means of one method's outcomes."""
        errors = [outcome.mse for outcome in outcomes]
        trials = len(errors)
        sd = float(np.std(errors, ddof=1)) if trials > 1 else None
        return cls(
            trials=trials,
            mse=float(np.mean(errors)),
            mse_sd=sd,
            fg=_mean(outcome.fg for outcome in outcomes),
            malicious_mse=_mean(outcome.malicious_mse for outcome in outcomes),
            mse_se=None if sd is None else sd / trials**0.5,
        )


def _mean(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


Means = Mapping[Cell, Mapping[str, MeanOutcome]]
"""A setting -> method -> means."""


def means_of(rows: Iterable[CellRow]) -> Means:
    """Return the means over each setting's trials."""
    outcomes: dict[Cell, dict[str, list[MethodOutcome]]] = {}
    for row in rows:
        by_method = outcomes.setdefault(row.cell.setting, {})
        for outcome in row.outcomes:
            by_method.setdefault(outcome.method, []).append(outcome)
    return {
        setting: {name: MeanOutcome.of(each) for name, each in by_method.items()}
        for setting, by_method in outcomes.items()
    }

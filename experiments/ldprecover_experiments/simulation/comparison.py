"""The estimates of a demo's round by item, beside the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ldprecover.estimation.metrics import frequency_gain, mse
from ldprecover_experiments.simulation.demo_score import Score
from ldprecover_experiments.simulation.demo_settings import DemoSettings
from ldprecover_experiments.simulation.demo_words import method_words
from ldprecover_experiments.simulation.poisoned_round import Targets, Vector

ESTIMATES = ("genuine", "poisoned", "projected", "recovered", "unmixed", "recovered_targets")
"""f~_X~, f~_Z, Norm-Sub, LDPRecover, un-mixing, and LDPRecover* with the targets."""

_METHODS = {"recovered": "ldprecover", "unmixed": "unmix", "recovered_targets": "ldprecover*"}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The estimates of a demo over d items, beside the truth f_X of the simulator.

    `estimates` has the keys ESTIMATES. `targets` (indices) and "recovered_targets" are None for an
    attack without targets, "unmixed" for a protocol that un-mixing does not fit.
    """

    settings: DemoSettings
    items: tuple[str, ...]
    targets: Targets | None
    true: Vector
    estimates: Mapping[str, Vector | None]

    def estimate(self, name: str) -> Vector:
        """Return an estimate that is not None."""
        estimate = self.estimates[name]
        assert estimate is not None, name
        return estimate

    @property
    def mse(self) -> dict[str, float | None]:
        """Mean squared error of each estimate against f_X."""
        return {
            name: None if f is None else mse(f, self.true) for name, f in self.estimates.items()
        }

    @property
    def fg(self) -> dict[str, float | None] | None:
        """Frequency gain of each estimate over the genuine one, f~_X~; None without targets."""
        if self.targets is None:
            return None
        genuine = self.estimate("genuine")
        return {
            name: None if f is None else frequency_gain(f, genuine, self.targets)
            for name, f in self.estimates.items()
        }

    @property
    def score(self) -> Score:
        """The verdict on the recoveries, in sentences, and their errors."""
        return Score(
            items=self.items,
            targets=self.targets,
            true=self.true,
            genuine=self.estimate("genuine"),
            poisoned=self.estimate("poisoned"),
            recovered={
                method_words(method): estimate
                for name, method in _METHODS.items()
                if (estimate := self.estimates[name]) is not None
            },
            malicious=self.settings.malicious_users,
        )

    def as_json(self) -> dict[str, Any]:
        """Return settings, targets (labels), MSE and FG."""
        targets = None if self.targets is None else [self.items[i] for i in self.targets]
        return {
            "settings": self.settings.as_json(),
            "targets": targets,
            "mse": self.mse,
            "fg": self.fg,
        }

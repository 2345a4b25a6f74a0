"""What came out of a demo: every estimate, and how far each is from the truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover.metrics import frequency_gain, mse
from ldprecover_cli.demo.settings import DemoSettings

__all__ = ["ESTIMATES", "Figures"]

ESTIMATES = ("genuine", "poisoned", "projected", "recovered", "recovered_targets")
"""f~_X~, f~_Z, its projection on the simplex (Norm-Sub), LDPRecover, and LDPRecover* which knows the targets."""

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Figures:
    """The estimates of a demo, each of the d items, beside the truth f_X that the simulator kept.

    `estimates` has each of ESTIMATES; `targets` (indices) and "recovered_targets" are None for an
    attack without targets.
    """

    settings: DemoSettings
    items: tuple[str, ...]
    targets: tuple[int, ...] | None
    true: Vector
    estimates: dict[str, Vector | None]

    def estimate(self, name: str) -> Vector:
        """Return an estimate that there is."""
        found = self.estimates[name]
        assert found is not None, name
        return found

    @property
    def mse(self) -> dict[str, float | None]:
        """Mean squared error of each estimate against f_X."""
        return {name: None if f is None else mse(f, self.true) for name, f in self.estimates.items()}

    @property
    def fg(self) -> dict[str, float | None] | None:
        """Frequency gain of each estimate over the genuine one, f~_X~; None without targets."""
        if self.targets is None:
            return None
        genuine, targets = self.estimate("genuine"), self.targets
        return {name: None if f is None else frequency_gain(f, genuine, targets) for name, f in self.estimates.items()}

    def as_json(self) -> dict[str, Any]:
        """Return settings, targets (labels), MSE and FG."""
        targets = None if self.targets is None else [self.items[i] for i in self.targets]
        return {"settings": self.settings.as_json(), "targets": targets, "mse": self.mse, "fg": self.fg}

"""Sets of frequencies: all that a round's reports allow, whatever malicious users sent."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ldprecover.types import FloatArray

_ROUNDING = 1e-12  # of a sum of frequencies


class Region(Protocol):
    """A convex set of frequencies of d items, which sum to one. It is not empty."""

    @property
    def lower(self) -> FloatArray:
        """The lower ends of the items' intervals."""

    @property
    def upper(self) -> FloatArray:
        """The upper ends."""

    def limits(self, weights: FloatArray) -> tuple[float, float]:
        """Return limits of the sum of the weighted frequencies over the set."""


@dataclass(frozen=True, eq=False)
class Box:
    """All frequencies between `lower` and `upper` that sum to one.

    Each end is reached by some of them.
    """

    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, lower: FloatArray, upper: FloatArray) -> "Box | None":
        """Return the box with ends that are reached, or None if it is empty."""
        lower, upper = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
        low, high = float(lower.sum()), float(upper.sum())
        if (lower > upper).any() or low > 1 + _ROUNDING or high < 1 - _ROUNDING:
            return None
        # All ends are reached: the others leave no more than this, and no less.
        largest, least = 1 - (low - lower) + _ROUNDING, 1 - (high - upper) - _ROUNDING
        return cls(np.maximum(lower, least), np.minimum(upper, largest))

    def limits(self, weights: FloatArray) -> tuple[float, float]:
        """Return the least and the largest sum of the weighted frequencies."""
        return self._least(weights), -self._least(-weights)

    def _least(self, weights: FloatArray) -> float:
        order = np.argsort(weights)
        room = (self.upper - self.lower)[order]
        before = np.cumsum(room) - room
        added = np.clip(1 - float(self.lower.sum()) - before, 0.0, room)
        return float(weights @ self.lower + weights[order] @ added)

"""Sets of frequencies: all that a round's reports allow, whatever malicious users sent."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ldprecover.types import FloatArray

_ROUNDING = 1e-12  # of a sum of frequencies
_DUALITY = 1e-9  # of a limit by duality
_EXCESS = 1e3  # the cost of leaving a polytope, in weights


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


@dataclass(frozen=True, eq=False)
class Polytope:
    """The frequencies in a box for which rows @ f <= ends. The ends of single items are the box's.

    Its limits are those of linear programmes, stated by weak duality: the solver's multipliers
    prove them whatever its rounding. Multipliers of 0, where it fails, give the limits of the box.
    """

    box: Box
    rows: FloatArray
    ends: FloatArray

    @property
    def is_possible(self) -> bool:
        """Whether multipliers do not prove that it is empty; one linear programme."""
        return self._largest(np.zeros(self.lower.size)) > -_DUALITY

    @property
    def lower(self) -> FloatArray:
        return self.box.lower

    @property
    def upper(self) -> FloatArray:
        return self.box.upper

    def limits(self, weights: FloatArray) -> tuple[float, float]:
        """Return limits of the sum of the weighted frequencies; two linear programmes."""
        low, high = self.box.limits(weights)
        return max(low, -self._largest(-weights)), min(high, self._largest(weights))

    def _largest(self, weights: FloatArray) -> float:
        multipliers, _ = self.optimum(weights)
        rest = self.box.limits(weights - multipliers @ self.rows)[1]
        return float(multipliers @ self.ends) + rest + _DUALITY * float(np.abs(weights).max())

    def optimum(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return the rows' multipliers at the largest weighted sum, and the frequencies there.

        The frequencies are None, and the multipliers prove it, where the polytope is empty.
        """
        linprog = _solver()
        d = weights.size
        # One more variable, which costs much, is how far the rows are beyond their ends.
        result = linprog(
            np.append(-weights, _EXCESS * max(1e-3, float(np.abs(weights).max()))),
            A_ub=np.column_stack([self.rows, -np.ones(self.ends.size)]),
            b_ub=self.ends,
            A_eq=np.append(np.ones(d), 0.0)[None],
            b_eq=[1.0],
            bounds=np.append(np.stack([self.lower, self.upper], axis=1), [[0.0, np.inf]], axis=0),
            method="highs",
        )
        if result.status != 0:
            return np.zeros(self.ends.size), None
        frequencies = result.x[:d] if result.x[d] < _DUALITY else None
        return np.maximum(-result.ineqlin.marginals, 0.0), frequencies


def _solver() -> Any:
    try:
        from scipy.optimize import linprog  # of the extra
    except ImportError as error:
        raise ImportError(
            "certificates from reports need scipy: pip install 'ldprecover[certify]'"
        ) from error
    return linprog

"""All frequencies that a round's reports allow, whatever malicious users sent."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ldprecover.distributions import upper_means
from ldprecover.items import target_indices
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import FloatArray

_ROUNDING = 1e-12  # of a sum of frequencies
_DUALITY = 1e-9  # of a limit by duality
_EXCESS = 1e3  # the cost of leaving a region, in weights


@dataclass(frozen=True, eq=False)
class Region:
    """The frequencies f that sum to one, for which lower <= f <= upper and rows @ f <= ends.

    Without rows some frequencies reach each of the `lower` and `upper` ends. With rows the limits
    are those of linear programmes, stated by weak duality: the solver's multipliers prove them,
    whatever its rounding. Multipliers of 0, where it fails, give the limits without rows.
    """

    lower: FloatArray
    upper: FloatArray
    rows: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    ends: FloatArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, lower: FloatArray, upper: FloatArray) -> "Region | None":
        """Return the region with ends that are reached, or None if it is empty."""
        lower, upper = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
        low, high = float(lower.sum()), float(upper.sum())
        if (lower > upper).any() or low > 1 + _ROUNDING or high < 1 - _ROUNDING:
            return None
        # All ends are reached: the others leave no more than this, and no less.
        largest, least = 1 - (low - lower) + _ROUNDING, 1 - (high - upper) - _ROUNDING
        return cls(np.maximum(lower, least), np.minimum(upper, largest))

    @property
    def is_possible(self) -> bool:
        """Whether multipliers do not prove that it is empty; one linear programme."""
        return self._largest(np.zeros(self.lower.size)) > -_DUALITY

    def total(self, items: Iterable[int], others: Iterable[int] = ()) -> tuple[float, float]:
        """Return the limits of the frequency of some items together, less that of others."""
        d, names = self.lower.size, ("item", "items")
        weights = np.zeros(d)
        weights[list(target_indices(items, d, names))] += 1.0
        weights[list(target_indices(others, d, names))] -= 1.0
        return self.limits(weights) if weights.any() else (0.0, 0.0)

    def limits(self, weights: FloatArray) -> tuple[float, float]:
        """Return the least and the largest sum of the weighted frequencies."""
        return 0.0 - self._largest(-weights), self._largest(weights)

    def _largest(self, weights: FloatArray) -> float:
        without = self._largest_in_box(weights)
        if not self.ends.size:
            return without
        multipliers, _ = self.optimum(weights)
        rest = self._largest_in_box(weights - multipliers @ self.rows)
        limit = float(multipliers @ self.ends) + rest + _DUALITY * float(np.abs(weights).max())
        return min(without, limit)

    def _largest_in_box(self, weights: FloatArray) -> float:
        order = np.argsort(-weights)
        widths = (self.upper - self.lower)[order]
        added = np.clip(1 - float(self.lower.sum()) - (np.cumsum(widths) - widths), 0.0, widths)
        return float(weights @ self.lower + weights[order] @ added)

    def optimum(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return the rows' multipliers at the largest weighted sum, and the frequencies there.

        The frequencies are None, and the multipliers prove it, where the region is empty.
        """
        try:
            from scipy.optimize import linprog  # of the extra
        except ImportError as error:
            raise ImportError(
                "certificates from reports need scipy: pip install 'ldprecover[certify]'"
            ) from error
        d = weights.size
        # One more variable, which costs much, is how far the rows are beyond their ends.
        result = linprog(
            np.append(-weights, _EXCESS * max(1e-3, float(np.abs(weights).max()))),
            A_ub=np.column_stack([self.rows.reshape(-1, d), -np.ones(self.ends.size)]),
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


def frequency_limits(
    oracle: FrequencyOracle, supporting: FloatArray, others: FloatArray, n: float, log_tail: float
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper limits of the frequencies of items among n honest users.

    At most `supporting` honest reports support an item, and at most `others` do not.
    """
    p, q = oracle.p, oracle.q
    means = upper_means(np.concatenate([others, supporting]), n, log_tail)  # in one call: faster
    return (1 - q - means[: others.size]) / (p - q), (means[others.size :] - q) / (p - q)

"""Least squares on the histogram of a round's reports, without the cells that are too full.

A cell is one of the M different reports. An honest round's histogram is linear in the frequencies,
so whatever users hold, it has M - d - 1 directions of noise alone. A cell that is far fuller than
the others say was filled on purpose: it is dropped, and the others give estimates without bias.
"""

import math
from dataclasses import dataclass

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.laws import ReportSums, required
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import FloatArray, Int64Array

_LEAST = 1e-9  # reports expected in a cell
_ROUNDS = 100  # in which full cells are found: each may drop some cells, and readmit others


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of an oracle, and those of them that are dropped.

    With e_v(c) = [cell c supports item v] - q, the columns e_v of all items are orthogonal, and so
    are they and a constant. Each has the squared norm M q (1 - q).
    """

    oracle: FrequencyOracle
    sums: ReportSums
    dropped: Int64Array
    _rows: FloatArray
    """e_v of the dropped cells, (cells, d)."""
    _inverse: FloatArray
    """(I - P)^-1 of the dropped cells; P projects a histogram on what honest rounds expect."""

    @classmethod
    def of(cls, oracle: FrequencyOracle, dropped: Int64Array) -> "Cells":
        """Return the cells without some dropped ones.

        Raises ParameterError if the others hardly determine a combination of the dropped cells.
        """
        sums = required(oracle.laws.report_sums, oracle.protocol, "a list of all its reports")
        q = oracle.q
        rows = oracle.supports(dropped.astype(oracle.wire.dtype)).astype(np.float64) - q
        matrix = np.eye(dropped.size) - (1 + rows @ rows.T / (q * (1 - q))) / sums.number
        if dropped.size and np.linalg.eigvalsh(matrix)[0] < THRESHOLDS.least_known:
            raise ParameterError("the other cells do not determine the dropped ones")
        inverse = np.linalg.inv(matrix)
        return cls(oracle, sums, dropped, rows, np.asarray(inverse))

    def filled(self, histogram: FloatArray | Int64Array) -> FloatArray:
        """Return the histogram with what the other cells say in place of the dropped ones."""
        filled = histogram.astype(np.float64)
        if self.dropped.size:
            filled[self.dropped] = 0.0
            filled[self.dropped] = self._inverse @ self._projected(filled)[self.dropped]
        return filled

    def expected(self, histogram: FloatArray | Int64Array) -> FloatArray:
        """Return the least-squares expectation of all cells by those that are not dropped."""
        return self._projected(self.filled(histogram))

    def residual(self, histogram: FloatArray | Int64Array) -> FloatArray:
        """Return the histogram minus its expectation; 0 in the cells that are dropped."""
        filled = self.filled(histogram)
        rest = filled - self._projected(filled)
        rest[self.dropped] = 0.0
        return rest

    def residual_norm(self, histogram: FloatArray) -> float:
        """Return the squared norm of the residual of a histogram without the dropped cells."""
        support, norm = self._centred_counts(histogram), self._item_norm
        total, number = float(histogram.sum()), self.sums.number
        squares = float(histogram @ histogram) - total**2 / number - float(support @ support) / norm
        if self.dropped.size:
            predicted = total / number + self._rows @ (support / norm)
            squares -= float(predicted @ self._inverse @ predicted)
        return squares

    def _projected(self, histogram: FloatArray) -> FloatArray:
        weights = self._centred_counts(histogram) / self._item_norm
        even = histogram.sum() / self.sums.number
        return even + self.sums.masses(weights) - self.oracle.q * weights.sum()

    def _centred_counts(self, histogram: FloatArray) -> FloatArray:
        """Return the products of a histogram with e_v of each item."""
        return self.sums.counts(histogram) - self.oracle.q * histogram.sum()

    @property
    def _item_norm(self) -> float:
        """The squared norm of e_v."""
        return self.sums.number * self.oracle.q * (1 - self.oracle.q)

    @property
    def prediction_variance(self) -> FloatArray:
        """The prediction variance of each dropped cell from the others, in units of the cell's."""
        return np.diag(self._inverse)

    def inflation(self) -> FloatArray:
        """Return by how much the dropped cells raise the variance of each item's estimate."""
        lost = (self._rows * (self._inverse @ self._rows)).sum(axis=0) / self._item_norm
        return 1 + lost


def without_full_cells(oracle: FrequencyOracle, histogram: Int64Array) -> tuple[Cells, float]:
    """Return the cells of a round without those that are far too full, and ln p of the fullest.

    An honest round loses a cell with a probability of `THRESHOLDS.full_cell`, by Chernoff's bound.
    The fullest cells are dropped first, and come back where the others explain them.
    """
    cells = Cells.of(oracle, np.empty(0, np.int64))
    limit = math.log(histogram.size / THRESHOLDS.full_cell)
    limit_of_cells = min(THRESHOLDS.most_cells, histogram.size // 4)
    log_p = 0.0
    for step in range(_ROUNDS):
        expected = _possible(oracle, cells.expected(histogram))
        spread = np.ones(histogram.size)
        spread[cells.dropped] = cells.prediction_variance
        excess = _surprise(histogram, expected) / spread
        if not step:
            log_p = min(0.0, math.log(histogram.size) - float(excess.max()))
        explained = excess[cells.dropped] < limit
        full = np.setdiff1d(np.flatnonzero(excess > limit), cells.dropped)
        remaining = cells.dropped[~explained] if step < _ROUNDS // 2 else cells.dropped
        fullest = full[np.argsort(-excess[full])][: max(1, full.size // 2)][
            : limit_of_cells - remaining.size
        ]
        changed = _identifiable(oracle, remaining, fullest)
        if changed is None or np.array_equal(changed.dropped, cells.dropped):
            break
        cells = changed
    return cells, log_p


def _identifiable(
    oracle: FrequencyOracle, dropped: Int64Array, fullest: Int64Array
) -> Cells | None:
    """Return cells without dropped ones and the first others that the rest determine."""
    while True:
        try:
            return Cells.of(oracle, np.union1d(dropped, fullest))
        except ParameterError:
            if not fullest.size:
                return None
            fullest = fullest[: fullest.size // 2]


def _surprise(observed: Int64Array, expected: FloatArray) -> FloatArray:
    """Return minus the logarithm of Chernoff's bound on counts as large; 0 for smaller ones."""
    counts = np.maximum(observed, expected)
    return counts * np.log(counts / expected) - (counts - expected)


def _possible(oracle: FrequencyOracle, expected: FloatArray) -> FloatArray:
    """Return expectations clipped to what honest users may send, whatever they hold."""
    p, q, even = oracle.p, oracle.q, max(float(expected.mean()), _LEAST)
    return np.clip(expected, even * (1 - p) / (1 - q), even * p / q)

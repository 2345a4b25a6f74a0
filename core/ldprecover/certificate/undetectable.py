"""The effect of malicious users that leave no trace in the reports.

If f* = (1 - beta) f + g, and A = sum_v g_v R_v / beta is a law, then reports drawn from A turn the
honest reports of users with frequencies f into those of users with f*. R_v is the law of an honest
report of item v. A is a law if g sums to beta, and to at least -beta/(ratio - 1) over the items of
any report, where ratio = p(1-q)/(q(1-p)): e^epsilon, for all seven protocols.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector
from ldprecover.certificate.certificates import check_share
from ldprecover.errors import ParameterError
from ldprecover.estimation.bisection import bisect
from ldprecover.estimation.simplex import project_simplex
from ldprecover.items import target_indices
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import BoolArray, FloatArray

_HALVINGS = 60
_MANY = 16  # items average out in a report
_FAINT = 1 / 64  # the variance of a report's likelihood that is left, relative to its mean
_STEPS, _CHECKED, _GAP = 10_000, 50, 1e-5  # of the linear programme


@dataclass(frozen=True, eq=False)
class Undetectable:
    """The largest effect of a share of malicious reports on targets that no test detects.

    `gain` is the largest rise of the targets' frequency, and `frequencies` are those that the round
    then looks like. `floor` is the length of the interval that stays open to those who see a round
    of the honest frequencies: any frequency of the targets in it leads to the same reports, if
    this share of them is malicious.
    """

    gain: float
    frequencies: FloatArray
    floor: float


def undetectable(
    oracle: FrequencyOracle, frequencies: ArrayLike, targets: Iterable[int], share: float
) -> Undetectable:
    """Return the largest gain of targets, by a share of malicious reports, that nothing detects.

    `frequencies` are those of the honest users. For few targets among many items the gain is
    beta ((1-q)/(p-q) - f_T), or what the others have to lose: their part in a report averages out.
    For GRR, SS, HR, few items and a large epsilon every report counts, however rare.

        undetectable(OUE(0.5, 102), np.full(102, 1 / 102), [5, 15], 0.05).gain  # 0.253

    Raises ParameterError for arguments that do not fit.
    """
    check_share(share)
    d, f = oracle.domain_size, finite_vector(frequencies, "frequencies")
    if f.size != d or f.min() < 0 or not math.isclose(f.sum(), 1, abs_tol=1e-6):
        raise ParameterError(f"frequencies must be {d} numbers of at least 0 that sum to one")
    raised = np.zeros(d, np.bool_)
    raised[list(target_indices(targets, d))] = True
    limits = _Limits(oracle, share, raised)
    looks = (1 - share) * f + limits.largest(raised, (share - 1) * f, 1.0)
    # (1 - beta) f' for the least and the largest f' that may be behind a round that looks like f.
    low, high = (f - limits.largest(items, f, share - 1) for items in (raised, ~raised))
    gain, floor = (looks - f)[raised].sum(), (high - low)[raised].sum() / (1 - share)
    return Undetectable(float(gain), looks, float(floor))


@dataclass(frozen=True, eq=False)
class _Limits:
    oracle: FrequencyOracle
    share: float
    targets: BoolArray

    def largest(self, raised: BoolArray, base: FloatArray, scale: float) -> FloatArray:
        """Return the g = base + scale x, x in the simplex, with the largest sum of raised items."""
        if self.oracle.laws.report_sums is not None:
            return self._programme(raised, base, scale)
        unbounded = np.full(base.size, math.inf)
        upper, lower = (unbounded, base) if scale > 0 else (base, -unbounded)

        def even(total: float) -> FloatArray:  # items are alike: the most even g is the best
            g, rest = np.empty(base.size), self.share - total
            g[raised] = _fill(upper[raised], total)
            others = _fill(upper[~raised], rest) if rest > 0 else -_fill(-lower[~raised], -rest)
            g[~raised] = others
            return g

        top = float(upper[raised].sum())
        low, high = min(self.share, top), min(self.share - float(lower[~raised].sum()), top)
        return even(bisect(lambda total: self._is_law(even(total)), low, high, _HALVINGS))

    @property
    def _least(self) -> float:
        p, q = self.oracle.p, self.oracle.q
        return -self.share / ((self.oracle.laws.likelihood_ratio or p * (1 - q) / q / (1 - p)) - 1)

    def _is_law(self, g: FloatArray) -> bool:
        oracle, p, q, k = self.oracle, self.oracle.p, self.oracle.q, self.oracle.fixed_size
        if k is not None:
            return float(np.partition(g, k - 1)[:k].sum()) >= self._least
        if not oracle.traits.independent_bits:
            raise oracle.lacks("a known set of the reports that users send")
        others = g[~self.targets]
        spread = max(_MANY, (p - q) ** 2 / (q * (1 - q)) / _FAINT) * float(others @ others)
        rest = q * others.sum() if spread <= others.sum() ** 2 else np.minimum(others, 0).sum()
        return float(np.minimum(g[self.targets], 0).sum() + rest) >= self._least

    def _programme(self, raised: BoolArray, base: FloatArray, scale: float) -> FloatArray:
        """Solve the linear programme whose constraints are the reports, where these are few.

        By primal and dual steps (Chambolle and Pock, 2011), until the
        dual proves the result.
        """
        sums, d, q = self.oracle.laws.report_sums, base.size, self.oracle.q
        assert sums is not None
        sign, root = math.copysign(1.0, scale), math.sqrt(sums.number * q * (1 - q))

        def columns(x: FloatArray) -> FloatArray:  # an isometry
            return (sums.masses(x) - q * x.sum()) / root

        def prices(y: FloatArray) -> FloatArray:
            return sign * (raised + (sums.counts(y) - q * y.sum()) / root)

        limit = ((self._least - q * self.share) / root - columns(base)) / abs(scale)
        honest = np.abs(base) / np.abs(base).sum()  # a solution without any gain
        spare = sign * columns(honest) - limit
        x = solution = honest
        y = np.zeros(sums.number)
        for i in range(_STEPS):
            following = project_simplex(x + prices(y) / d)
            y = np.maximum(y - d * (sign * columns(2 * following - x) - limit), 0.0)
            x = following
            if i % _CHECKED == 0:
                slack = sign * columns(x) - limit
                short = slack < np.minimum(spare, 0.0)  # a spare of 0 may be rounded
                back = np.max(slack[short] / (slack - spare)[short], initial=0.0)
                solution = x + back * (honest - x)
                if prices(y).max() - y @ limit - sign * solution[raised].sum() < _GAP:
                    break
        return base + scale * solution


def _fill(limits: FloatArray, total: float) -> FloatArray:
    """Return the most even numbers up to their limits that sum to the total."""
    ordered = np.sort(limits)
    before = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])[: limits.size]
    levels = (total - before) / np.arange(limits.size, 0, -1)
    reached = np.flatnonzero(levels <= ordered)
    return np.minimum(limits, levels[reached[0]] if reached.size else math.inf)

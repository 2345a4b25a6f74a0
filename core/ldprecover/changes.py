"""Changes from one round to a later one of the same items: intervals, words and certificates."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import KW_ONLY, dataclass
from functools import cache, cached_property
from statistics import NormalDist
from typing import Literal

import numpy as np

from ldprecover._checks import check_real, check_whole
from ldprecover.certificate import Certificate, certify
from ldprecover.errors import ParameterError
from ldprecover.estimation.bisection import bisect
from ldprecover.estimation.estimates import Estimates, two_sided_quantile
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports.tally import Tally
from ldprecover.types import FloatArray, Int64Array

__all__ = ["Changes", "least_change"]

People = Literal["sample", "same"]
Word = Literal["rose", "fell", "not_proven"]
WORDS: tuple[Word, ...] = ("fell", "not_proven", "rose")
_CHANCE = 0.8  # at which a change of the planned size is seen
_STEPS = 2**20  # of a share of malicious reports that a change bears


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes f_after - f_before of d frequencies, with intervals that hold together.

    The two rounds are of one frequency oracle. The normal intervals hold for all items together
    with the `confidence` (Bonferroni), and for all of several `comparisons` that are shown
    together, if no report is malicious. The certified ones hold if at most a `malicious_share` of
    either round's reports are, or the larger share that one of them proves. They are of the honest
    users, and from counts.

    The `people` of the rounds are random samples, which adds f(1 - f)/n of each to the variance,
    or the same.

        changes = Changes(oracle, tally, tally)
        changes.words(is_attacked=False)[0]         # 'not_proven'
        changes.proven_up_to[0]                     # nan

    Raises ParameterError for a round of no report or of other items.
    """

    oracle: FrequencyOracle
    before: Tally
    after: Tally
    _: KW_ONLY
    malicious_share: float = 0.05
    confidence: float = 0.95
    people: People = "sample"
    comparisons: int = 1

    def __post_init__(self) -> None:
        if self.people not in ("sample", "same"):
            raise ParameterError(f"people must be sample or same, not {self.people!r:.40}")
        check_whole("comparisons", self.comparisons, 1)
        check_real("malicious_share", self.malicious_share, 0, 1)
        two_sided_quantile(self.confidence)

    def __repr__(self) -> str:
        return (
            f"Changes({self.before.n:,} to {self.after.n:,} reports, {self.changes.size:,} items)"
        )

    @cached_property
    def _estimates(self) -> tuple[Estimates, Estimates]:
        return Estimates.of(self.oracle, self.before), Estimates.of(self.oracle, self.after)

    @cached_property
    def changes(self) -> FloatArray:
        """The d differences of the unbiased estimates."""
        before, after = self._estimates
        return after.frequencies - before.frequencies

    @cached_property
    def standard_errors(self) -> FloatArray:
        """The d standard errors of the differences."""
        variances = np.zeros(self.oracle.domain_size)
        for each in self._estimates:
            f = np.clip(each.frequencies, 0, 1)
            sampling = f * (1 - f) / each.n if self.people == "sample" else 0
            variances += each.standard_errors**2 + sampling
        return np.sqrt(variances)

    @property
    def lower(self) -> FloatArray:
        """The d lower ends, without malicious users."""
        return self.changes - self._quantile * self.standard_errors

    @property
    def upper(self) -> FloatArray:
        """The d upper ends, without malicious users."""
        return self.changes + self._quantile * self.standard_errors

    @property
    def _error(self) -> float:
        return (1 - self.confidence) / self.comparisons

    @property
    def _quantile(self) -> float:
        return two_sided_quantile(1 - self._error / self.oracle.domain_size)

    @cached_property
    def _certificates(self) -> tuple[Certificate, Certificate]:
        confidence = 1 - self._error / 2
        before, after = (
            certify(self.oracle, tally, self.malicious_share, confidence)
            for tally in (self.before, self.after)
        )
        return before, after

    @cached_property
    def assumed_share(self) -> float:
        """The share of the certified intervals: the assumed one, or the largest proven one."""
        return max(self.malicious_share, self._least_share)

    @cached_property
    def _least_share(self) -> float:
        """A share at which both rounds are possible."""
        least = max(each.least_malicious_share for each in self._certificates)
        return math.nextafter(least + 1 / _STEPS, 1) if least else 0.0

    @property
    def certified_lower(self) -> FloatArray:
        """The d lower ends, whatever malicious reports are."""
        return self._certified(self.assumed_share)[0]

    @property
    def certified_upper(self) -> FloatArray:
        """The d upper ends, whatever malicious reports are."""
        return self._certified(self.assumed_share)[1]

    def _certified(self, share: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends at a share of malicious reports."""
        before, after = (each.evidence.region(share) for each in self._certificates)
        if before is None or after is None:
            nothing = np.full(self.oracle.domain_size, math.nan)
            return nothing, nothing
        return after.lower - before.upper, after.upper - before.lower

    def words(self, *, is_attacked: bool) -> tuple[Word, ...]:
        """Return for each item whether it rose or fell, or that no change is proven.

        The certified interval decides where a round's verdict sees an attack, else the normal one.
        """
        lower = self.certified_lower if is_attacked else self.lower
        upper = self.certified_upper if is_attacked else self.upper
        return tuple(WORDS[1 + sign] for sign in _signs(lower, upper).tolist())

    @cached_property
    def proven_up_to(self) -> FloatArray:
        """The largest share of malicious reports at which each item's change is certified.

        It is rounded down to 2^-20, of many items to d times 2^-28, and NaN where none is. It may
        be chosen after the fact, since the intervals nest.
        """
        signs = cache(lambda step: _signs(*self._certified(step / _STEPS)))
        first = math.ceil(self._least_share * _STEPS)
        shares = np.full(self.oracle.domain_size, math.nan)
        steps = range(first, _STEPS, 1 + self.oracle.domain_size // 256)
        for item in np.flatnonzero(signs(first)):
            shares[item] = bisect_left(steps, True, key=lambda step: not signs(step)[item]) - 1
        return (shares * steps.step + first) / _STEPS


def _signs(lower: FloatArray, upper: FloatArray) -> Int64Array:
    """Return 1 where an interval is above 0, -1 where it is below, else 0."""
    return (lower > 0).astype(np.int64) - (upper < 0)


def least_change(
    oracle: FrequencyOracle, n: int, frequency: float | None = None, *, people: People = "sample"
) -> float:
    """Return the least rise of one item between two rounds of n reports that is seen in 80 %.

    The item has the `frequency` before, by default 1/d. It is seen if its interval, one of d that
    hold together with 95 %, excludes 0. Infinite if no rise is.
    """
    d = oracle.domain_size
    f = 1 / d if frequency is None else check_real("frequency", frequency, 0, 1)
    z = two_sided_quantile(1 - 0.05 / d) + NormalDist().inv_cdf(_CHANCE)

    def is_seen(change: float) -> bool:
        shares = np.array([f, f + change])
        sampling = shares * (1 - shares) if people == "sample" else 0
        return z**2 * float((oracle.variance(shares, n) + sampling / n).sum()) <= change**2

    return bisect(is_seen, 1 - f, 0.0, 40) if is_seen(1 - f) else math.inf

"""Laws: the distributions that a protocol's honest reports follow."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TypeVar

import numpy as np

from ldprecover.distributions import binomial_law, binomial_threshold
from ldprecover.errors import ParameterError
from ldprecover.types import FloatArray, Int64Array, Reports, Rng

_Law = TypeVar("_Law")

SIZES = "a law of the number of items that a report supports"
HITS = "a law of how many of several items a report supports"
SUMS = "a law of the sum of several estimates that is the same for all items"


def required(law: _Law | None, protocol: str, name: str) -> _Law:
    """Return a law that is known.

    Raises ParameterError for None; the message says that the protocol lacks the law `name`.
    """
    if law is None:
        raise ParameterError(f"{protocol} lacks {name}")
    return law


class SizeLaw(ABC):
    """The distribution of |S(z)|, the number of items that an honest report supports.

    It is the same for every item that a user may hold. For a protocol that hashes it holds under
    an ideal hash.
    """

    @property
    @abstractmethod
    def variance(self) -> float:
        """Var |S(z)|."""

    @abstractmethod
    def probabilities(self) -> FloatArray:
        """Return P(|S(z)| = k) for k from 0 to d."""

    @abstractmethod
    def draw(self, m: int, rng: Rng) -> Int64Array:
        """Return m independent sizes."""


@dataclass(frozen=True)
class FixedSize(SizeLaw):
    """Every report supports `size` of the d items."""

    domain_size: int
    size: int

    @property
    def variance(self) -> float:
        return 0.0

    def probabilities(self) -> FloatArray:
        law = np.zeros(self.domain_size + 1)
        law[self.size] = 1.0
        return law

    def draw(self, m: int, rng: Rng) -> Int64Array:
        return np.full(m, self.size)


@dataclass(frozen=True)
class IndependentSizes(SizeLaw):
    """A report supports its user's item with probability p, and each of d - 1 others with q.

    These d events are independent, so the size is a Bernoulli(p) plus a Binomial(d - 1, q) number.
    """

    domain_size: int
    p: float
    q: float

    @property
    def variance(self) -> float:
        return self.p * (1 - self.p) + (self.domain_size - 1) * self.q * (1 - self.q)

    def probabilities(self) -> FloatArray:
        others = binomial_law(self.domain_size - 1, self.q)
        return (1 - self.p) * np.append(others, 0.0) + self.p * np.append(0.0, others)

    def draw(self, m: int, rng: Rng) -> Int64Array:
        others = rng.binomial(self.domain_size - 1, self.q, size=m)
        return others + (rng.random(m) < self.p)


@dataclass(frozen=True)
class HitLaw:
    """The law of |S(z) & R| for a set R of r items, known here for a single item alone.

    A protocol with more structure overrides the methods.
    """

    p: float
    q: float

    def nonholder_law(self, items: Int64Array) -> FloatArray | None:
        """Return P(j) for j from 0 to r, for a user who holds none of the r items.

        None where the law is not known, or depends on the item that the user holds.
        """
        own, not_own = (self.other_items_law(len(items), own) for own in (True, False))
        if own is not None and not_own is not None:
            return self.p * own + (1 - self.p) * not_own
        return np.array([1 - self.q, self.q]) if len(items) == 1 else None

    def other_items_law(self, r: int, own: bool) -> FloatArray | None:
        """Return P(j) for j from 0 to r: how many of r items that the user does not hold.

        It is given that the report supports the user's item (`own`), or does not. None where that
        is not known, or depends on the items.
        """
        return None

    def variances(self, r: int) -> tuple[float, float] | None:
        """Return the variance for a user who holds one of r items, and for one who holds none.

        None where they are not known, or depend on which items they are.
        """
        return None


class OneItemHits(HitLaw):
    """Every report supports exactly one item."""

    def nonholder_law(self, items: Int64Array) -> FloatArray:
        r = len(items)
        return np.concatenate([[1 - r * self.q, r * self.q], np.zeros(r - 1)])

    def variances(self, r: int) -> tuple[float, float]:
        hit, miss = self.p + (r - 1) * self.q, r * self.q
        return hit * (1 - hit), miss * (1 - miss)


class IndependentHits(HitLaw):
    """The items that a report supports are independent, given the item that its user holds."""

    def other_items_law(self, r: int, own: bool) -> FloatArray:
        return binomial_law(r, self.q)

    def variances(self, r: int) -> tuple[float, float]:
        p, q = self.p, self.q
        return p * (1 - p) + (r - 1) * q * (1 - q), r * q * (1 - q)


@dataclass(frozen=True)
class JointSupport:
    """How likely an honest report supports several given items together.

    `bound(z)` is at least the probability of supporting z given items, whatever item the user
    holds.
    """

    bound: Callable[[int], float]

    def threshold(self, n: int, z: int, rate: float) -> int:
        """Return tau with P(at least tau of n honest reports support z given items) <= rate."""
        return binomial_threshold(n, self.bound(z), rate)


@dataclass(frozen=True)
class ReportSums:
    """Sums over a list of all M reports, each item supported by Mq of them, any two by Mq^2.

    `masses(values)` sums the values of the items that each report supports. `counts(weights)` sums
    the weights of the reports that support each item.
    """

    number: int
    masses: Callable[[FloatArray], FloatArray]
    counts: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Laws:
    """The distributions that honest reports of a protocol follow.

    A report z supports the items in S(z): with probability `p` the item of its user, with
    probability `q` any other. A law is None if it is not known, or if it differs between users
    because it depends on the items that they hold.

    - `sizes`: the number of items that a report supports.
    - `hits`: the number of given items that it supports.
    - `joint_support`: the probability of supporting several given items together.
    - `all_supporting`: the probability of report 0, where it supports every item and a summary
      counts it.
    - `report_sums`: sums over all reports, if these are few: then items are not alike.
    - `likelihood_ratio`: P(z | v)/P(z | w) for an item v that z supports and an item w that it does
      not, where this is one number for all reports and items.
    - `log_likelihood(reports, frequencies)`: log P(z) of reports of users whose items are drawn
      from the frequencies; given its hash seed, for a report that has one.
    """

    protocol: str
    domain_size: int
    p: float
    q: float
    _: KW_ONLY
    sizes: SizeLaw | None = None
    hits: HitLaw | None = None
    joint_support: JointSupport | None = None
    all_supporting: float | None = None
    report_sums: ReportSums | None = None
    likelihood_ratio: float | None = None
    log_likelihood: Callable[[Reports, FloatArray], FloatArray] | None = None

    def size_law(self) -> SizeLaw:
        """Return `sizes`. Raises ParameterError where it is None."""
        return required(self.sizes, self.protocol, SIZES)

    def hits_of_others(self, items: Int64Array) -> FloatArray:
        """Return `hits.nonholder_law(items)`. Raises ParameterError where that is None."""
        law = None if self.hits is None else self.hits.nonholder_law(items)
        return required(law, self.protocol, HITS)

    @property
    def mean_size(self) -> float:
        """E|S(z)| = p + (d-1)q, the mean number of items that a report supports."""
        return self.p + (self.domain_size - 1) * self.q

    def report_law(self, frequencies: FloatArray) -> FloatArray | None:
        """Return the probability of each of all M reports, of users of these frequencies.

        It is linear in the frequencies, also where these are estimates. None without `report_sums`
        or `likelihood_ratio`.
        """
        return self._lifted(frequencies, lambda sums: sums.masses)

    def item_means(self, values: FloatArray) -> FloatArray | None:
        """Return the mean of a value that each of the M reports has, for a user of each item.

        None as in `report_law`.
        """
        return self._lifted(values, lambda sums: sums.counts)

    def _lifted(
        self,
        values: FloatArray,
        choose: Callable[[ReportSums], Callable[[FloatArray], FloatArray]],
    ) -> FloatArray | None:
        sums, ratio = self.report_sums, self.likelihood_ratio
        if sums is None or ratio is None:
            return None
        lifted = values.sum() + (ratio - 1) * choose(sums)(values)
        # Over the sum of the reports' likelihoods: `ratio` for the Mq that support an item.
        return lifted / (sums.number * (1 + (ratio - 1) * self.q))

    def honest_support(self, weights: FloatArray) -> FloatArray:
        """Return the expected share of honest reports that support each item.

        `weights` is the distribution of the items that users hold.
        """
        return self.q + weights * (self.p - self.q)

    def largest_sum_moments(self, n: int) -> tuple[float, float] | None:
        """Return variance and skewness of sum_v f~(v) of n honest reports, the largest ones.

        Only they depend on the items of users where there is no law of sizes: the mean is 1. With
        such a law the skewness is taken as 0. None without it, as in `report_law`.
        """
        scale = n * (self.p - self.q) ** 2
        if self.sizes is not None:
            return self.sizes.variance / scale, 0.0
        if self.report_sums is None:
            return None
        deviations = self.report_sums.masses(np.ones(self.domain_size)) - self.mean_size
        second, third = (self.item_means(deviations**power) for power in (2, 3))
        if second is None or third is None:
            return None
        skewness = float(np.abs(third).max() / second.min() ** 1.5)
        return float(second.max()) / scale, skewness / math.sqrt(n)

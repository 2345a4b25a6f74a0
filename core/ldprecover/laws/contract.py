"""The probability laws of a protocol's honest reports, as one object: `oracle.laws`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ldprecover.errors import ParameterError
from ldprecover.laws.distributions import binomial_threshold
from ldprecover.laws.hits import HitLaw
from ldprecover.laws.sizes import SizeLaw
from ldprecover.types import FloatArray, Int64Array, Reports

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
class AllSupporting:
    """Reports that support every item.

    The summary of a tally counts them at `position`. `probability` is that of an honest report to
    be one of them.
    """

    position: int
    probability: float


@dataclass(frozen=True)
class Laws:
    """The distributions that honest reports of a protocol follow.

    A report z supports the items in S(z): with probability `p` the item of its user, with
    probability `q` any other. A law is None if it is not known, or if it differs between users
    because it depends on the items that they hold.

    - `sizes`: the number of items that a report supports.
    - `hits`: the number of given items that it supports.
    - `joint_support`: the probability of supporting several given items together.
    - `all_supporting`: reports that support every item, where a summary counts them.
    - `likelihood_ratio`: P(z | v)/P(z | w) for an item v that z supports and an item w that it does
      not, where this is one number for all reports and items.
    - `log_likelihood(reports, frequencies)`: log P(z) of reports of users whose items are drawn
      from the frequencies; given its hash seed, for a report that has one.
    """

    protocol: str
    domain_size: int
    p: float
    q: float
    sizes: SizeLaw | None = None
    hits: HitLaw | None = None
    joint_support: JointSupport | None = None
    all_supporting: AllSupporting | None = None
    likelihood_ratio: float | None = None
    log_likelihood: Callable[[Reports, FloatArray], FloatArray] | None = None

    def size_law(self) -> SizeLaw:
        """Return `sizes`. Raises ParameterError where it is None."""
        return required(self.sizes, self.protocol, SIZES)

    def hits_of_others(self, items: Int64Array) -> FloatArray:
        """Return `hits.of_others(items)`. Raises ParameterError where that is None."""
        law = None if self.hits is None else self.hits.of_others(items)
        return required(law, self.protocol, HITS)

    @property
    def mean_size(self) -> float:
        """E|S(z)| = p + (d-1)q, the mean number of items that a report supports."""
        return self.p + (self.domain_size - 1) * self.q

    @property
    def malicious_sum(self) -> float:
        """S = (1 - qd)/(p - q), the sum of f~_Y of one-item malicious reports (paper, V-C)."""
        return (1 - self.q * self.domain_size) / (self.p - self.q)

    def honest_support(self, weights: FloatArray) -> FloatArray:
        """Return the expected share of honest reports that support each item.

        `weights` is the distribution of the items that users hold.
        """
        return self.q + weights * (self.p - self.q)

    def sum_variance(self, n: int) -> float | None:
        """Return Var sum_v f~(v) of n honest reports, or a bound on it; None without size law.

        It holds for all frequencies of the users' items.
        """
        if self.sizes is None:
            return None
        return self.sizes.variance / (n * (self.p - self.q) ** 2)

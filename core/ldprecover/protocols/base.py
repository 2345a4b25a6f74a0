"""The one contract of every frequency oracle."""

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ldprecover.errors import ParameterError, ReportError
from ldprecover.laws import support_size_law
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

__all__ = ["DEFAULT_SEARCH", "MAX_DOMAIN_SIZE", "MAX_EPSILON", "MIN_EPSILON", "Aim", "FrequencyOracle", "Search"]

MIN_EPSILON, MAX_EPSILON = 0.01, 10.0
MAX_DOMAIN_SIZE = 100_000

DEFAULT_SEARCH = 1_000
"""Hash seeds that a malicious user tries, as Cao et al. (USENIX Security 2021) have it."""

Aim = Literal["most", "balanced", "honest"]
"""What a crafted report is to be beside supporting wanted items: see `FrequencyOracle.craft`."""

Search = int | Literal["exhaustive"]
"""How many random seeds a malicious user tries, or that all of the hash are searched."""


@dataclass(frozen=True)
class FrequencyOracle(ABC):
    """A pure LDP protocol for frequencies (Wang et al., USENIX Security 2017).

    Values are item indices 0..domain_size-1. Reports travel as rows of `report_dtype`, which are
    their packed bytes. Everything after counting needs only `p`, `q` and the support counts:
    p = P(v in S(z)) for a user who holds v, q = the same for a user who does not.

    Raises ParameterError when a parameter is outside its range.
    """

    epsilon: float
    domain_size: int

    protocol: ClassVar[str]
    crafted_model: ClassVar[str | None] = None
    """Which malicious model of a recovery (`recovery.malicious`) the crafted reports are, if any."""

    fixed_size: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float):
            raise ParameterError("epsilon must be a number")
        if not MIN_EPSILON <= self.epsilon <= MAX_EPSILON:
            raise ParameterError(f"epsilon must be from {MIN_EPSILON} to {MAX_EPSILON:g}, not {self.epsilon}")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if isinstance(self.domain_size, bool) or not isinstance(self.domain_size, int):
            raise ParameterError("domain_size must be an integer")
        if not 2 <= self.domain_size <= MAX_DOMAIN_SIZE:
            raise ParameterError(f"domain_size must be from 2 to {MAX_DOMAIN_SIZE}, not {self.domain_size}")

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report supports its own user's item."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report supports an item its user does not hold."""

    @property
    @abstractmethod
    def report_dtype(self) -> np.dtype:
        """Type of one report: its packed bytes, little-endian."""

    @functools.cached_property
    def report_size(self) -> int:
        """Packed bytes of one report."""
        return self.report_dtype.itemsize

    @abstractmethod
    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        """Return one report for each item, satisfying epsilon-LDP exactly.

        `rng` None draws from the operating system, as a real user must; a generator is for
        simulations. Raises ParameterError for an item outside the domain.
        """

    @abstractmethod
    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        """Return each item encoded but not perturbed: what a malicious user sends (paper, V-C).

        For OLH the seed is still drawn at random, since a report is a pair (seed, bucket).
        """

    @abstractmethod
    def check(self, reports: Reports) -> None:
        """Raise ReportError, with position and reason, for the first report outside its range."""

    @abstractmethod
    def support_counts(self, reports: Reports) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the d items."""

    @abstractmethod
    def supports(self, reports: Reports) -> BoolArray:
        """Return the (n, d) matrix 1[v in S(z)]: for analysis; counting never needs it."""

    def estimate(self, counts: ArrayLike, n: int) -> FloatArray:
        """Return the unbiased frequencies f~(v) = (C(v)/n - q)/(p - q); never clipped."""
        if n < 1:
            raise ParameterError("an estimate needs at least one report")
        return (np.asarray(counts, dtype=np.float64) / n - self.q) / (self.p - self.q)

    def variance(self, frequencies: ArrayLike, n: int) -> FloatArray:
        """Return Var f~(v) at true frequencies f from n honest reports (paper, Lemma 2).

        q(1-q)/(n(p-q)^2) + f(v)(1-p-q)/(n(p-q)), exact for every pure protocol.
        """
        if n < 1:
            raise ParameterError("a variance needs at least one report")
        f = np.asarray(frequencies, dtype=np.float64)
        p, q = self.p, self.q
        return q * (1 - q) / (n * (p - q) ** 2) + f * (1 - p - q) / (n * (p - q))

    def standard_errors(self, frequencies: ArrayLike, n: int) -> FloatArray:
        """Return the square root of Lemma 2's variance at the estimates clipped into [0, 1]."""
        f = np.clip(np.asarray(frequencies, dtype=np.float64), 0.0, 1.0)
        return np.sqrt(self.variance(f, n))

    @property
    def malicious_sum(self) -> float:
        """S = (1 - qd)/(p - q): the sum of f~_Y if each malicious report supports one item (paper, V-C)."""
        return (1 - self.q * self.domain_size) / (self.p - self.q)

    @property
    def honest_support_size(self) -> float:
        """E|S(z)| = p + (d-1)q of an honest report."""
        return self.p + (self.domain_size - 1) * self.q

    def _items(self, items: ArrayLike) -> Int64Array:
        array = np.asarray(items)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            if array.size == 0 and array.ndim == 1:
                return array.astype(np.int64)
            raise ParameterError("items must be a one-dimensional array of integer indices")
        if array.size and (array.min() < 0 or array.max() >= self.domain_size):
            raise ParameterError(f"items must be from 0 to {self.domain_size - 1}")
        return array.astype(np.int64, copy=False)

    def _refuse_first(self, bad: BoolArray, reason: str) -> None:
        if bad.any():
            raise ReportError(reason, position=int(np.argmax(bad)))

    def support_size_law(self) -> FloatArray:
        return support_size_law(self.domain_size, self.p, self.q)

    # What malicious users can make of the protocol's reports. One that a protocol leaves out is refused by name.

    @property
    def expected_size(self) -> int:
        """L, the items that an honest report supports on average, in whole items."""
        return math.floor(self.honest_support_size) if self.fixed_size is None else self.fixed_size

    @property
    def coin_room(self) -> float:
        """How many targets `craft_by_coins` can hide in a report on average."""
        return math.inf

    def encoded_others(self) -> float:
        """Return how many items but its own a report of `encode` supports on average, each of them alike."""
        raise self._lacks("a law of encoded reports")

    def encoded_support(self, weights: FloatArray) -> FloatArray:
        """Return pi, for each of d items the expected share of reports of `encode` that support it.

        `weights` is the distribution that the encoded items are drawn from.
        """
        return _alike(weights, 1, 1.0, self.encoded_others())

    def craft(
        self, wanted: Int64Array, rng: np.random.Generator, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH
    ) -> Reports:
        """Return one report for each row of `wanted`, an (m, r) array of r distinct items to support.

        `aim` says what the report is to be beside that, in as far as the protocol leaves a choice:

        - "most": as many wanted items as a report can support; beside them, the size of an honest one;
        - "balanced": the most wanted items less one for each item that the size is off an honest one's;
        - "honest": of a size drawn as honest reports have them, in the first place.

        `search` is of protocols whose users search for a seed; "exhaustive" belongs to the aim "most".
        """
        raise self._lacks("crafted reports")

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> tuple[float, float]:
        """Return how many of its r wanted items, and of the others, a report of `craft` supports on average.

        The items of a kind are alike. `m` is the number of reports: good seeds of an exhaustive search run out.
        """
        raise self._lacks("a law of crafted reports")

    def crafted_support(
        self, included: FloatArray, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> FloatArray:
        """Return pi, for each of d items the expected share of m reports of `craft` that support it.

        `included` is w(v) = P(v in W) of a report's wanted items W, which are one item drawn by these
        weights (r = 1) or a uniformly random set of r of the items where w is positive.
        """
        return _alike(included, r, *self.expected_hits(r, aim=aim, search=search, m=m))

    def craft_by_coins(
        self, targets: Int64Array, rate: float, m: int, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH
    ) -> Reports:
        """Return m reports that are honest ones but for the targets, each supported by a coin of its own."""
        raise self._lacks("reports crafted by coins")

    def coin_support(self, targets: Int64Array, rate: float, *, search: int = DEFAULT_SEARCH) -> FloatArray:
        """Return for each of d items the expected share of the reports of `craft_by_coins` that support it."""
        raise self._lacks("a law of reports crafted by coins")

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        """Return m reports drawn uniformly from all that can be sent."""
        raise self._lacks("uniformly random reports")

    def uniform_support(self) -> float:
        """Return the expected share of uniformly random reports that support an item, the same for all items."""
        raise self._lacks("a law of uniformly random reports")

    def report_of_size(self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH) -> Reports:
        """Return one report, a row of its own, that supports a random set of about `size` items."""
        raise self._lacks("reports of a wished size")

    def _support_of(self, wanted: Int64Array, hits: float, others: float) -> FloatArray:
        """Return pi where every report wants the same items: `hits` of them, and `others` of the rest."""
        included = np.zeros(self.domain_size)
        included[wanted] = 1.0
        return _alike(included, wanted.size, hits, others)

    def _lacks(self, what: str) -> ParameterError:
        return ParameterError(f"{self.protocol} lacks {what}")


def _alike(included: FloatArray, r: int, hits: float, others: float) -> FloatArray:
    """Return pi where a report supports `hits` of its r wanted items and `others` of the rest, each kind alike.

    pi(v) = w(v) hits/r + (1 - w(v)) others/(d - r).
    """
    support: FloatArray = included * (hits / r) + (1 - included) * (others / max(included.size - r, 1))
    return support

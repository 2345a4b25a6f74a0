"""The one contract of every frequency oracle."""

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ldprecover.errors import ParameterError, ReportError
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

__all__ = ["MAX_DOMAIN_SIZE", "MAX_EPSILON", "MIN_EPSILON", "FrequencyOracle"]

MIN_EPSILON, MAX_EPSILON = 0.01, 10.0
MAX_DOMAIN_SIZE = 100_000


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

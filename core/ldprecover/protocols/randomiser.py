"""The half of a protocol that its users see: parameters, reports, and the forms in which reports
travel.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ldprecover.errors import ParameterError, ReportError
from ldprecover.protocols.description import Column, OwnParameter, ReportForms, Traits
from ldprecover.types import BoolArray, Int64Array, Reports, UInt32Array

MIN_EPSILON, MAX_EPSILON = 0.01, 10.0
MAX_DOMAIN_SIZE = 100_000

# (report, item) pairs tested together: the intermediate arrays stay in a core's second-level cache.
_TILE = 1 << 16


def check_epsilon(epsilon: object) -> float:
    """Return epsilon as a float. Raises ParameterError unless it is a number from 0.01 to 10."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise ParameterError("epsilon must be a number")
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise ParameterError(
            f"epsilon must be from {MIN_EPSILON} to {MAX_EPSILON:g}, not {epsilon}"
        )
    return float(epsilon)


def check_domain_size(domain_size: int) -> int:
    """Return the number of items. Raises ParameterError unless it is an integer from 2 to
    100,000.
    """
    check_integer("domain_size", domain_size, 2, MAX_DOMAIN_SIZE)
    return domain_size


@dataclass(frozen=True)
class LocalRandomiser(ABC):
    """How a user's item becomes a report that satisfies epsilon-LDP, and what a report says.

    Values are item indices 0..domain_size-1. Reports travel as rows of `report_dtype`, which are
    their packed bytes. A report supports some of the items, S(z).

    A protocol may have one integer parameter of its own: `parameter` names it, a field of the same
    name holds it, `parameter_range` are its least and greatest values, `parameter_meaning` is one
    line on it.

    Raises ParameterError when a parameter is outside its range.
    """

    epsilon: float
    domain_size: int

    protocol: ClassVar[str]
    """The name in the interface."""
    title: ClassVar[str]
    """The name in full."""
    traits: ClassVar[Traits]
    forms: ClassVar[ReportForms]
    parameter: ClassVar[str | None] = None
    parameter_range: ClassVar[tuple[int, int]] = (0, 0)
    parameter_meaning: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        check_domain_size(self.domain_size)
        if self.parameter is not None:
            check_integer(self.parameter, self.parameter_value, *self.parameter_range)

    @classmethod
    def default_parameter(cls, epsilon: float, domain_size: int) -> int | None:
        """Return what the protocol's own parameter is unless it is given; None where it has
        none.
        """
        return None

    @classmethod
    def own_parameters(cls) -> tuple[OwnParameter, ...]:
        """Return the parameters of a round that are this protocol's own."""
        if cls.parameter is None:
            return ()
        return (OwnParameter(cls.parameter, *cls.parameter_range, cls.parameter_meaning),)

    @property
    def parameter_value(self) -> int | None:
        """The protocol's own parameter, None where it has none."""
        return None if self.parameter is None else getattr(self, self.parameter)

    @property
    def own(self) -> dict[str, Any]:
        """The protocol's own parameters by name; nothing where it has none."""
        return {} if self.parameter is None else {self.parameter: getattr(self, self.parameter)}

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report supports its own user's item."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report supports an item its user does not hold."""

    @property
    def thresholds(self) -> dict[str, int]:
        """The integers that `perturb` compares uniform 64-bit words with, by name; empty where
        there are none.

        They are rounded to the private side, so that there is one right value of each. Rounds state
        them for clients in languages that have no decimals of 60 digits.
        """
        return {}

    @property
    def fixed_size(self) -> int | None:
        """How many items every report supports; None where reports differ."""
        return 1 if self.traits.one_item else None

    @property
    def hash_tests(self) -> int:
        """Items hashed to count one report: work that takes far longer than reading its bytes."""
        return 0

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

        What an honest user draws at random beside perturbing, such as a hash seed, is drawn still.
        """

    @abstractmethod
    def check(self, reports: Reports) -> None:
        """Raise ReportError, with position and reason, for the first report outside its range."""

    def check_submission(self, reports: Reports) -> None:
        """Raise ReportError for checked reports that honest users send together less than once in
        10^9.

        They are of one submission. What is that improbable is the protocol's own; most have
        nothing.
        """
        return

    @abstractmethod
    def supports(self, reports: Reports) -> BoolArray:
        """Return the (n, d) matrix 1[v in S(z)]: for analysis; counting never needs it."""

    def supported(self, reports: Reports, items: Int64Array) -> BoolArray:
        """Return the (n, len(items)) matrix 1[item in S(z)], without testing the other items where
        that can be.
        """
        return self.supports(reports)[:, items]

    def support_sizes(self, reports: Reports) -> Int64Array:
        """Return |S(z)|, the number of items that each report supports."""
        sizes = np.empty(len(reports), np.int64)
        if self.fixed_size is not None:
            sizes.fill(self.fixed_size)
            return sizes
        for rows in tiles((len(reports), self.domain_size)):
            sizes[rows] = np.count_nonzero(self.supports(reports[rows]), axis=1)
        return sizes

    def seeds(self, reports: Reports) -> UInt32Array:
        """Return each report's hash seed. Raises ParameterError for a protocol that is not
        seeded.
        """
        raise self._lacks("hash seeds")

    @property
    def listed_seeds(self) -> int | None:
        """M, of how many public seeds each ticket picks one; None where users draw theirs, or need
        none.
        """
        return None

    def seed_of(self, draw: int) -> int:
        """Return the seed that a ticket picks whose draw this is, a number of 64 uniform bits.

        Raises ParameterError for a protocol without given seeds.
        """
        raise self._lacks("given seeds")

    def with_seeds(self, seeds: ArrayLike) -> Self:
        """Return the protocol as users have it to whom these seeds were given: each report takes
        the next of them.

        Raises ParameterError for a protocol without given seeds, and ReportError for a seed that is
        not one of them.
        """
        raise self._lacks("given seeds")

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns of the reports' JSON form."""

    @abstractmethod
    def to_columns(self, reports: Reports) -> tuple[list[Any], ...]:
        """Return the values of each column of the JSON form."""

    @abstractmethod
    def from_columns(self, values: Sequence[list[Any]]) -> Reports:
        """Return the reports in columns of equal length, at least one of them, the values each of
        their column's kind.

        Integers are in their column's range, strings are checked here: raises ReportError for the
        first bad one.
        """

    def _items(self, items: ArrayLike) -> Int64Array:
        array = np.asarray(items)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            if array.size == 0 and array.ndim == 1:
                return array.astype(np.int64)
            raise ParameterError("items must be a one-dimensional array of integer indices")
        if array.size and (array.min() < 0 or array.max() >= self.domain_size):
            raise ParameterError(f"items must be from 0 to {self.domain_size - 1}")
        return array.astype(np.int64, copy=False)

    def _raise_first(self, bad: BoolArray, reason: str) -> None:
        if bad.any():
            raise ReportError(reason, position=int(np.argmax(bad)))

    def _lacks(self, what: str) -> ParameterError:
        """Return the error that says what this protocol does not have."""
        return ParameterError(f"{self.protocol} lacks {what}")


def tiles(shape: tuple[int, int]) -> Iterator[slice]:
    """Yield slices of the rows of a matrix of so many cells that a cache holds them."""
    step = max(1, _TILE // max(1, shape[1]))
    for start in range(0, shape[0], step):
        yield slice(start, start + step)


def check_integer(name: str, value: object, low: int, high: int) -> None:
    """Raise ParameterError for what is no integer of this range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParameterError(f"{name} must be an integer")
    if not low <= value <= high:
        raise ParameterError(f"{name} must be from {low} to {high}, not {value}")

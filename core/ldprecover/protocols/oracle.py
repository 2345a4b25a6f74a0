"""The contract of every frequency oracle.

No other package compares a protocol with a name or a class. Code asks for a trait, a law or a
method. A protocol that lacks one has None, or raises ParameterError with its name. How a protocol
is attacked and simulated is registered for its class: `crafting.crafter_of` and
`reports.tally_sampler`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import check_real, check_whole, finite_array, first_entry, integers
from ldprecover.counting.tiles import tiles
from ldprecover.errors import ParameterError
from ldprecover.protocols.description import OwnParameter, Traits
from ldprecover.protocols.laws import (
    FixedSize,
    HitLaw,
    IndependentHits,
    IndependentSizes,
    JointSupport,
    Laws,
    OneItemHits,
)
from ldprecover.protocols.wire import WireForm
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, Rng, UInt32Array

MIN_EPSILON, MAX_EPSILON = 0.01, 10.0
MAX_DOMAIN_SIZE = 100_000
MAX_USERS = 10**12

Items = Int64Array | slice
"""Item indices, or a slice of all items."""
ALL_ITEMS = slice(None)

_ROUNDING = 1e-9  # of a share of the reports


def check_epsilon(epsilon: object) -> float:
    """Return epsilon as a float. Raises ParameterError unless it is a number from 0.01 to 10."""
    return check_real("epsilon", epsilon, MIN_EPSILON, MAX_EPSILON)


def check_domain_size(domain_size: int) -> int:
    """Return the number of items. Raises ParameterError unless it is from 2 to 100,000."""
    return check_whole("domain_size", domain_size, 2, MAX_DOMAIN_SIZE)


@dataclass(frozen=True)
class FrequencyOracle(ABC):
    """A pure LDP protocol for frequencies (Wang et al., USENIX Security 2017).

    It turns a user's item into a report that satisfies epsilon-LDP, and reads reports.

    Values are item indices 0..domain_size-1. Reports are rows of `wire.dtype`, which are their
    packed bytes. S(z) is the set of items that a report z supports.

    A protocol may have one own integer parameter, which `parameter` describes.

    Estimation needs only `p`, `q` and the support counts: p = P(v in S(z)) for a user who holds v,
    and q for a user who does not.

    Counts are read from a summary of the reports that adds. For most protocols the summary is the
    counts.

    Raises ParameterError if a parameter is outside its range.

        oracle = frequency_oracle("oue", epsilon=1.0, domain_size=4)
        reports = oracle.perturb([0, 3, 3])  # one row a user
        counts = oracle.support_counts(reports)
        frequencies = oracle.estimate(counts, n=3)
    """

    epsilon: float
    domain_size: int

    protocol: ClassVar[str]
    """The name in the interface."""
    title: ClassVar[str]
    """The full name."""
    traits: ClassVar[Traits]
    parameter: ClassVar[OwnParameter | None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "domain_size", check_domain_size(self.domain_size))
        if self.parameter is not None:
            own = self.parameter
            value = check_whole(own.name, getattr(self, own.name), own.low, own.high)
            object.__setattr__(self, own.name, value)

    @property
    def own(self) -> dict[str, Any]:
        """The values of the protocol's own parameters by name."""
        if self.parameter is None:
            return {}
        return {self.parameter.name: getattr(self, self.parameter.name)}

    @property
    def derived(self) -> dict[str, int]:
        """Integers that a round states beside its own parameters, from which they follow."""
        return {}

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report supports its own user's item."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report supports an item that its user does not hold."""

    @property
    def thresholds(self) -> dict[str, int]:
        """The integers that `perturb` compares uniform 64-bit words with, by name.

        They are rounded to the private side, so each has exactly one right value. Rounds state them
        for clients in languages without decimals of 60 digits. Empty if the protocol has none.
        """
        return {}

    @property
    def fixed_size(self) -> int | None:
        """The number of items that every report supports; None if reports differ."""
        return 1 if self.traits.one_item else None

    @cached_property
    def hash_tests(self) -> int:
        """Items hashed to count one report, which takes far longer than reading its bytes."""
        return 0

    @property
    def is_proposed(self) -> bool:
        """Whether `choose` proposes this oracle; false if another protocol takes its place."""
        return True

    @property
    @abstractmethod
    def wire(self) -> WireForm:
        """The packed and the JSON form of reports. Computed once for each oracle."""

    @abstractmethod
    def perturb(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        """Return one report for each item, satisfying epsilon-LDP exactly.

        `items` are n indices from 0 to d - 1. The n reports are rows of `wire.dtype`. `rng` None
        draws from the operating system, as a real user must; a generator is for
        simulations. Raises ParameterError for an item outside the domain.
        """

    @abstractmethod
    def encode(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        """Return each item encoded but not perturbed, as malicious users send it (paper, V-C).

        Arguments and result have the shapes of `perturb`. Other random parts of an honest report,
        such as a hash seed, are drawn.
        """

    @abstractmethod
    def supports(self, reports: Reports, items: Items = ALL_ITEMS) -> BoolArray:
        """Return the (n, len(items)) matrix 1[item in S(z)], by default of all d items.

        It is for analysis and tests no other items if possible; counting does not use it.
        """

    def support_sizes(self, reports: Reports) -> Int64Array:
        """Return |S(z)|, the number of items that each of n reports supports, of shape (n,)."""
        sizes = np.empty(len(reports), np.int64)
        if self.fixed_size is not None:
            sizes.fill(self.fixed_size)
            return sizes
        for rows in tiles((len(reports), self.domain_size)):
            sizes[rows] = np.count_nonzero(self.supports(reports[rows]), axis=1)
        return sizes

    def seeds(self, reports: Reports) -> UInt32Array:
        """Return each report's hash seed. Raises ParameterError for a protocol without seeds."""
        raise self.lacks("hash seeds")

    @cached_property
    def summary_size(self) -> int:
        """The number of integers in a summary."""
        return self.domain_size

    @abstractmethod
    def summarise(self, reports: Reports) -> Int64Array:
        """Return the summary of checked reports.

        Summaries add. No number in a summary exceeds the number of reports.
        """

    def counts_from(self, summary: Int64Array) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the d items."""
        return summary

    def support_counts(self, reports: Reports) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the d items.

        Raises as `wire.checked`, which says what are reports.
        """
        return self.counts_from(self.summarise(self.wire.checked(reports)))

    def summarise_with_sizes(self, reports: Reports) -> tuple[Int64Array, Int64Array]:
        """Return the summary of checked reports, and how many items each report supports."""
        return self.summarise(reports), self.support_sizes(reports)

    def estimate(self, counts: ArrayLike, n: int) -> FloatArray:
        """Return the unbiased frequencies f~(v) = (C(v)/n - q)/(p - q); never clipped.

        Counts and frequencies have the shape (d,), or (..., d). With n = 1 the counts may be shares
        of the reports. Raises ParameterError unless n is an integer of at least 1, each count is
        from 0 to n, and their sum is at most that of n reports of a fixed size.
        """
        number = check_whole("n, the number of reports,", n, 1, 1 << 63)
        values, slack = finite_array(counts, "counts"), number * _ROUNDING
        if values.shape[-1] != self.domain_size:
            raise ParameterError(
                f"counts must be of the {self.domain_size} items, not of shape {values.shape}"
            )
        bad = (values < -slack) | (values > number + slack)
        if bad.any():
            raise ParameterError(
                f"every count must be from 0 to n, {number}; {first_entry(values, bad)}"
            )
        limit = number * (self.fixed_size or self.domain_size)
        if (values.sum(axis=-1) > limit + self.domain_size * slack).any():
            raise ParameterError(f"counts of {number} reports must sum to at most {limit}")
        return (values / number - self.q) / (self.p - self.q)

    def variance(self, frequencies: ArrayLike, n: int) -> FloatArray:
        """Return Var f~(v) at true frequencies f from n honest reports (paper, Lemma 2).

        q(1-q)/(n(p-q)^2) + f(v)(1-p-q)/(n(p-q)), exact for every pure protocol. It has the shape of
        the frequencies. Raises ParameterError for an n below 1, and frequencies that are not finite
        numbers.
        """
        n = check_whole("n, the number of reports,", n, 1, 1 << 63)
        (f,) = finite_array([frequencies], "frequencies")
        p, q = self.p, self.q
        return q * (1 - q) / (n * (p - q) ** 2) + f * (1 - p - q) / (n * (p - q))

    def standard_errors(self, frequencies: ArrayLike, n: int) -> FloatArray:
        """Return the square root of Lemma 2's variance at the estimates clipped to [0, 1].

        A standard error is a share of the users, as the frequencies are.
        """
        (f,) = finite_array([frequencies], "frequencies")
        return np.sqrt(self.variance(f.clip(0.0, 1.0), n))

    @property
    def malicious_sum(self) -> float:
        """S = (1 - qd)/(p - q), the sum of f~_Y of one-item malicious reports (paper, V-C)."""
        return (1 - self.q * self.domain_size) / (self.p - self.q)

    @property
    def laws(self) -> Laws:
        """The distributions of honest reports, as far as `traits` and `fixed_size` state them.

        A protocol that knows more replaces these by its own: `replace(super().laws, hits=...)`.
        """
        d, p, q, traits = self.domain_size, self.p, self.q, self.traits
        laws = Laws(self.protocol, d, p, q, hits=HitLaw(p, q))
        if traits.independent_bits:
            # One of the z items is the user's own.
            joint_support = JointSupport(lambda z: p * q ** (z - 1))
            laws = replace(
                laws,
                sizes=IndependentSizes(d, p, q),
                hits=IndependentHits(p, q),
                joint_support=joint_support,
            )
        if traits.one_item:
            laws = replace(laws, hits=OneItemHits(p, q))
        if self.fixed_size is not None:
            laws = replace(laws, sizes=FixedSize(d, self.fixed_size))
        if traits.extremal:
            laws = replace(laws, likelihood_ratio=math.exp(self.epsilon))
        return laws

    def supported_mass(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        """Return the summed frequencies of the items that each of n reports supports, (n,)."""
        return self.supports(reports).astype(np.float64) @ frequencies

    def item_indices(self, items: ArrayLike) -> Int64Array:
        """Return items as an array of int64, for `perturb` and `encode`.

        Raises ParameterError unless they are a vector of integers from 0 to d - 1.
        """
        array = integers(items, "items", self.domain_size - 1)
        if array.ndim != 1:
            raise ParameterError("items must be a one-dimensional array of integer indices")
        return array.astype(np.int64, copy=False)

    def lacks(self, part: str) -> ParameterError:
        """Return the error for a part that this protocol does not have."""
        return ParameterError(f"{self.protocol} lacks {part}")

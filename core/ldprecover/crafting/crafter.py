"""The contract of a crafter: the reports that malicious users can make, and what these support."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ldprecover.protocols.laws import required
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.types import FloatArray, Int64Array, Reports, Rng

DEFAULT_SEARCH = 1_000
"""Hash seeds that a malicious user tries, as in Cao et al. (USENIX Security 2021)."""

Aim = Literal["most", "balanced", "honest", "projected"]
"""The form of a crafted report apart from the items that it supports: see `Strategy`."""

Search = int | Literal["exhaustive"]
"""The number of random seeds that a malicious user tries, or all seeds of the hash."""


@dataclass(frozen=True)
class Strategy:
    """How malicious users craft reports for chosen items.

    `aim` says how the report looks otherwise, as far as the protocol leaves a choice:

    - "most": it supports as many chosen items as possible, and is of an honest size otherwise;
    - "balanced": it maximises the chosen items minus |its size - an honest size|;
    - "honest": its size is drawn as honest sizes are; among such reports, most chosen items;
    - "projected": as "most", but where such reports raise others too, chosen items give way.

    `search` is for protocols whose users search for a seed; "exhaustive" needs the aims "most" or
    "projected".
    """

    aim: Aim = "most"
    search: Search = DEFAULT_SEARCH


DEFAULT_STRATEGY = Strategy()

CraftedReports = tuple[Callable[[int, Rng], Reports], Callable[[int], FloatArray]]
"""A function of m and a generator that makes m reports, and one of m that returns their pi."""


CRAFTED_LAW = "a law of crafted reports that is the same for all items"
HIT_REPORTS = "reports that support a chosen number of targets"
ENCODED_LAW = "a law of encoded reports"
JOINT_REPORTS = "reports that support a set together or not at all"
DISPLACED_LAW = (
    "a law of what malicious reports support beside their targets that is the same for all items"
)

# A displacement below this share of q is rounding.
_SLIGHT = 1e-9


@dataclass(frozen=True)
class Crafter(ABC):
    """Crafts reports of one protocol for malicious users.

    pi(v) is the expected share of the malicious reports that support item v. For a protocol that
    hashes it holds under an ideal hash.
    """

    oracle: FrequencyOracle

    model: ClassVar[str | None] = None
    """The malicious model of a recovery (`recovery.malicious`) that `craft` follows, if any."""

    @property
    def expected_size(self) -> int:
        """L, the number of items that an honest report supports on average, rounded down."""
        size = self.oracle.fixed_size
        return math.floor(self.oracle.laws.mean_size) if size is None else size

    @property
    def coin_capacity(self) -> float:
        """The number of targets that `hit_reports` support without standing out, on average."""
        return math.inf

    @property
    def encoded_others(self) -> float | None:
        """The mean number of other items that a report of `FrequencyOracle.encode` supports.

        Each other item is equally likely. None where that does not hold.
        """
        return None

    def encoded_support(self, weights: FloatArray) -> FloatArray:
        """Return pi of reports of `FrequencyOracle.encode`, for items drawn from `weights`.

        Raises ParameterError where `encoded_others` is None.
        """
        others = required(self.encoded_others, self.oracle.protocol, ENCODED_LAW)
        return support_of_kinds(weights, 1, 1.0, others)

    @property
    def displacements(self) -> tuple[float, ...] | None:
        """By how much less than q malicious reports may support an item that is no target.

        A recovery considers each value. Empty where they support it as often as honest reports do;
        None where the values depend on the item.
        """
        if self.encoded_others is None:
            return None
        q = self.oracle.q
        displaced = q - self.encoded_others / (self.oracle.domain_size - 1)
        return (displaced,) if displaced > _SLIGHT * q else ()

    @abstractmethod
    def craft(
        self, chosen_items: Int64Array, rng: Rng, strategy: Strategy = DEFAULT_STRATEGY
    ) -> Reports:
        """Return one report for each row of `chosen_items`, an (m, r) array of r distinct items."""

    def expected_hits(
        self, r: int, strategy: Strategy = DEFAULT_STRATEGY, m: int = 1
    ) -> tuple[float, float] | None:
        """Return the mean numbers of chosen items and of others that a report of `craft` supports.

        Items of each kind are equally likely; None where that does not hold. `m` is the number of
        reports: an exhaustive search runs out of good seeds.
        """
        return None

    def crafted_support(
        self, included: FloatArray, r: int, strategy: Strategy = DEFAULT_STRATEGY, m: int = 1
    ) -> FloatArray:
        """Return pi of m reports of `craft`.

        `included` is w(v) = P(v in W) of a report's chosen items W, which are one item drawn by
        these weights (r = 1) or a uniformly random set of r of the items where w is positive.
        """
        hits = self.expected_hits(r, strategy, m)
        return support_of_kinds(included, r, *required(hits, self.oracle.protocol, CRAFTED_LAW))

    def hit_laws(self, targets: Int64Array, search: int) -> FloatArray:
        """Return for each goal, 0 to r, the law of how many targets its reports support.

        These are `hit_reports`; the result is (r + 1, r + 1). Raises ParameterError for a protocol
        without such reports.
        """
        return required(None, self.oracle.protocol, HIT_REPORTS)

    def hit_reports(self, targets: Int64Array, law: FloatArray, search: int) -> CraftedReports:
        """Return reports that are honest but for the targets, of which they support their goal.

        `law` is that of the goals, 0 to r. Reports support the nearest number that can be made.
        Raises ParameterError as `hit_laws` does.
        """
        return required(None, self.oracle.protocol, HIT_REPORTS)

    def joint_reports(
        self, targets: Int64Array, rate: float, fixed_item: int | None
    ) -> CraftedReports:
        """Return reports of honest sizes that support all targets or none.

        All have probability `rate`. They support the `fixed_item` as well, if any. Raises
        ParameterError for a protocol without such reports.
        """
        return required(None, self.oracle.protocol, JOINT_REPORTS)

    # The following raise ParameterError for a protocol that states no crafter.

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        """Return log P(z) of reports crafted for one target, all of which support it.

        It is on the scale of `Laws.log_likelihood` (Cao et al., USENIX Security 2021).
        """
        raise self.oracle.lacks("a likelihood of crafted reports")

    def uniform_reports(self, m: int, rng: Rng) -> Reports:
        """Return m reports drawn uniformly from all valid ones."""
        raise self.oracle.lacks("uniform reports")

    @property
    def uniform_support(self) -> float:
        """The expected share of uniform reports that support an item, the same for all items."""
        raise self.oracle.lacks("uniform reports")

    def report_of_size(self, size: float, rng: Rng, search: int) -> Reports:
        """Return one report, an array of one row, that supports about `size` random items."""
        raise self.oracle.lacks("reports crafted for a size")


@dataclass(frozen=True)
class HashCrafter(Crafter):
    """Crafts reports of a hash: one that supports an item supports each other with q."""

    @property
    def encoded_others(self) -> float:
        return (self.oracle.domain_size - 1) * self.oracle.q

    @property
    def uniform_support(self) -> float:
        return self.oracle.q


def support_of_targets(d: int, targets: Int64Array, hits: float, others: float) -> FloatArray:
    """Return pi where all reports want these targets and support `hits` of them, `others` else."""
    included = np.zeros(d)
    included[targets] = 1.0
    return support_of_kinds(included, targets.size, hits, others)


def support_of_kinds(included: FloatArray, r: int, hits: float, others: float) -> FloatArray:
    """Return pi(v) = w(v) hits/r + (1 - w(v)) others/(d - r).

    A report supports `hits` of its r chosen items and `others` of the rest, each kind alike.
    """
    rest = max(included.size - r, 1)
    return included * (hits / r) + (1 - included) * (others / rest)

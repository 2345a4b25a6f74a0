"""The half of a protocol that malicious users see: what they can make of its reports, and what that
supports.

Attacks go by it alone. A protocol implements what it has; for what it leaves out it raises
ParameterError with its name.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ldprecover.protocols.randomiser import LocalRandomiser
from ldprecover.types import FloatArray, Int64Array, Reports

DEFAULT_SEARCH = 1_000
"""Hash seeds that a malicious user tries, as Cao et al. (USENIX Security 2021) have it."""

Aim = Literal["most", "balanced", "honest"]
"""What a crafted report is to be beside supporting wanted items: see `CraftedReports.craft`."""

Search = int | Literal["exhaustive"]
"""How many random seeds a malicious user tries, or that all of the hash are searched."""


_SLIGHT = 1e-9


@dataclass(frozen=True)
class CraftedReports(LocalRandomiser):
    """Reports that malicious users make of nothing but their wishes, and what such reports support
    on average.

    pi(v) is the expected share of the malicious reports that support item v: under an ideal hash,
    for a protocol that hashes.
    """

    crafted_model: ClassVar[str | None] = None
    """Which malicious model of a recovery (`recovery.malicious`) the reports of `craft` are, if
    any.
    """

    @property
    def expected_size(self) -> int:
        """L, the items that an honest report supports on average, in whole items."""
        return (
            math.floor(self.p + (self.domain_size - 1) * self.q)
            if self.fixed_size is None
            else self.fixed_size
        )

    @property
    def coin_room(self) -> float:
        """How many targets `craft_by_coins` can hide in a report on average."""
        return math.inf

    def encoded_others(self) -> float:
        """Return how many items but its own a report of `encode` supports on average, each of them
        alike.
        """
        raise self._lacks("a law of encoded reports")

    def encoded_support(self, weights: FloatArray) -> FloatArray:
        """Return pi, for each of d items the expected share of reports of `encode` that support it.

        `weights` is the distribution that the encoded items are drawn from.
        """
        return _alike(weights, 1, 1.0, self.encoded_others())

    def displacements(self) -> tuple[float, ...]:
        """Return by how much less than q malicious reports may support an item that they are not
        for.

        Each value is one that a recovery considers; none where they support it as honest reports
        do. Raises ParameterError where it is not known.
        """
        displaced = self.q - self.encoded_others() / (self.domain_size - 1)
        return (displaced,) if displaced > _SLIGHT * self.q else ()

    def craft(
        self,
        wanted: Int64Array,
        rng: np.random.Generator,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
    ) -> Reports:
        """Return one report for each row of `wanted`, an (m, r) array of r distinct items to
        support.

        `aim` says what the report is to be beside that, in as far as the protocol leaves a choice:

        - "most": as many wanted items as a report can support; beside them, the size of an honest
          one;
        - "balanced": the most wanted items less one for each item that the size is off an honest
          one's;
        - "honest": of a size drawn as honest reports have them, in the first place.

        `search` is of protocols whose users search for a seed; "exhaustive" belongs to the aim
        "most".
        """
        raise self._lacks("crafted reports")

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> tuple[float, float]:
        """Return how many of its r wanted items, and of the others, a report of `craft` supports on
        average.

        The items of a kind are alike. `m` is the number of reports: good seeds of an exhaustive
        search run out.
        """
        raise self._lacks("a law of crafted reports")

    def crafted_support(
        self,
        included: FloatArray,
        r: int,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
        m: int = 1,
    ) -> FloatArray:
        """Return pi, for each of d items the expected share of m reports of `craft` that support
        it.

        `included` is w(v) = P(v in W) of a report's wanted items W, which are one item drawn by
        these weights (r = 1) or a uniformly random set of r of the items where w is positive.
        """
        return _alike(included, r, *self.expected_hits(r, aim=aim, search=search, m=m))

    def craft_by_coins(
        self,
        targets: Int64Array,
        rate: float,
        m: int,
        rng: np.random.Generator,
        *,
        search: int = DEFAULT_SEARCH,
    ) -> Reports:
        """Return m reports that are honest ones but for the targets, each supported by a coin of
        its own.
        """
        raise self._lacks("reports crafted by coins")

    def coin_support(
        self, targets: Int64Array, rate: float, *, search: int = DEFAULT_SEARCH
    ) -> FloatArray:
        """Return for each of d items the expected share of the reports of `craft_by_coins` that
        support it.
        """
        raise self._lacks("a law of reports crafted by coins")

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        """Return m reports drawn uniformly from all that can be sent."""
        raise self._lacks("uniformly random reports")

    def uniform_support(self) -> float:
        """Return the expected share of uniformly random reports that support an item, the same for
        all items.
        """
        raise self._lacks("a law of uniformly random reports")

    def report_of_size(
        self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH
    ) -> Reports:
        """Return one report, a row of its own, that supports a random set of about `size` items."""
        raise self._lacks("reports of a wished size")

    def _support_of(self, wanted: Int64Array, hits: float, others: float) -> FloatArray:
        """Return pi where every report wants the same items: `hits` of them, and `others` of the
        rest.
        """
        included = np.zeros(self.domain_size)
        included[wanted] = 1.0
        return _alike(included, wanted.size, hits, others)


def _alike(included: FloatArray, r: int, hits: float, others: float) -> FloatArray:
    """Return pi where a report supports `hits` of its r wanted items and `others` of the rest, each
    kind alike.

    pi(v) = w(v) hits/r + (1 - w(v)) others/(d - r).
    """
    support: FloatArray = included * (hits / r) + (1 - included) * (
        others / max(included.size - r, 1)
    )
    return support

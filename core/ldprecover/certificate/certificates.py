"""What a round's reports prove about the frequencies of its honest users."""

import math
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ldprecover.certificate.evidence import Evidence
from ldprecover.certificate.region import Region
from ldprecover.certificate.reports import SEED_BITS, report_evidence
from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.items import target_indices
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.reports import ReportSource
from ldprecover.types import BoolArray, FloatArray, Reports

_HALVINGS = 30  # of a share: it is exact to 1e-9


class Claim(Protocol):
    """A statement on the frequencies that the reports may prove."""

    def holds(self, region: Region) -> bool:
        """Return whether it holds for all frequencies of a region."""


@dataclass(frozen=True)
class Ahead:
    """More users hold `item` than `other`."""

    item: int
    other: int

    def holds(self, region: Region) -> bool:
        return region.limits(_weights(region, {self.item: 1.0, self.other: -1.0}))[0] > 0


@dataclass(frozen=True)
class AmongFirst:
    """Of each of the `items`, fewer than `k` other items are held by as many users."""

    items: tuple[int, ...]
    k: int

    def holds(self, region: Region) -> bool:
        rivals = np.count_nonzero(region.upper >= region.lower[list(self.items)].min())
        return bool(rivals - 1 < self.k)  # an item is not its own rival


@dataclass(frozen=True)
class MoreThan:
    """More than a `share` of the users hold one of the `items`."""

    items: tuple[int, ...]
    share: float

    def holds(self, region: Region) -> bool:
        return region.limits(_weights(region, dict.fromkeys(self.items, 1.0)))[0] > self.share


def _weights(region: Region, weights: dict[int, float]) -> FloatArray:
    vector = np.zeros(region.lower.size)
    vector[list(weights)] = list(weights.values())
    return vector


@dataclass(frozen=True)
class Ranking:
    """The items that are `certain` to be among the first k, and those that are `possible`."""

    certain: tuple[int, ...]
    possible: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Intervals that hold for every attack by at most a share of the reports.

    All that it states holds together, with its confidence: at this share and at all others, since
    one event of the honest reports' randomness implies it all. It is about the frequencies among
    the round's honest users; honest users who lie count as honest.

        certificate = certify(oracle, tally, malicious_share=0.01)
        certificate.difference(0, 1)                # (0.02, 0.07)
        certificate.tolerance(Ahead(0, 1))          # 0.014
        certificate.least_malicious_share           # 0.0
    """

    evidence: Evidence
    malicious_share: float
    confidence: float
    seed: int | None = None
    """The seed that drew which reports choose what is tested; None from counts."""

    @cached_property
    def region(self) -> Region | None:
        """All frequencies that are possible; None if more reports are malicious than assumed."""
        return self.evidence.region(self.malicious_share)

    @property
    def is_possible(self) -> bool:
        """Whether the reports do not prove that more of them are malicious than assumed."""
        return self.region is not None

    @property
    def lower(self) -> FloatArray:
        """The lower ends of the d items' intervals; NaN if no frequencies are possible.

        They are those that the counts give, also of a certificate from reports: the total of one
        item may have a narrower interval.
        """
        return self._unknown() if self.region is None else self.region.lower

    @property
    def upper(self) -> FloatArray:
        """The upper ends."""
        return self._unknown() if self.region is None else self.region.upper

    def total(self, items: Iterable[int]) -> tuple[float, float]:
        """Return the interval of the share of users who hold one of the items."""
        chosen = target_indices(items, self.evidence.domain_size, ("item", "items"))
        return self._limits(dict.fromkeys(chosen, 1.0))

    def difference(self, item: int, other: int) -> tuple[float, float]:
        """Return the interval of f(item) - f(other)."""
        target_indices((item, other), self.evidence.domain_size, ("item", "items"))
        return self._limits({item: 1.0, other: -1.0}) if item != other else (0.0, 0.0)

    def ranking(self, k: int) -> Ranking:
        """Return which items are among the first k, with certainty and possibly."""
        if not 1 <= k <= self.evidence.domain_size:
            raise ParameterError(f"k must be from 1 to {self.evidence.domain_size}, not {k}")
        if self.region is None:
            return Ranking((), tuple(range(self.evidence.domain_size)))
        lower, upper = self.region.lower, self.region.upper
        d = lower.size
        rivals = d - 1 - np.searchsorted(np.sort(upper), lower, side="left")
        ahead = d - np.searchsorted(np.sort(lower), upper, side="right")
        return Ranking(_indices(rivals < k), _indices(ahead < k))

    @cached_property
    def least_malicious_share(self) -> float:
        """The share of the reports that are proven not to come from honest users."""
        return self._first_share(lambda share: self.evidence.region(share) is not None)

    def tolerance(self, claim: Claim) -> float | None:
        """Return the largest share of malicious reports at which the claim is proven.

        None if it is not proven at `least_malicious_share`: then it is open.
        """
        least = self.least_malicious_share

        def open_at(share: float) -> bool:
            region = self.evidence.region(share)
            return region is not None and not claim.holds(region)

        if open_at(least + 2.0**-_HALVINGS):
            return None
        return self._first_share(open_at)

    @property
    def assumption(self) -> str:
        """What the intervals assume, and what they were computed from, as text."""
        source = (
            "Only the counts of the reports were read."
            if self.seed is None
            else "All reports were read; the seed drew those that chose what is tested."
        )
        return (
            f"If at most {100 * self.malicious_share:.3g} % of the {self.evidence.n:,} reports are "
            f"malicious, all of this holds together, with a confidence of "
            f"{100 * self.confidence:.4g} %, whatever these reports are; it is about the honest "
            f"users of this round. {source}"
        )

    def _first_share(self, condition: Callable[[float], bool]) -> float:
        """Return the least share, rounded down, at which a condition holds that then stays true."""
        if condition(0.0):
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if condition(middle) else (middle, high)
        return low

    def _limits(self, weights: dict[int, float]) -> tuple[float, float]:
        if self.region is None:
            return math.nan, math.nan
        return self.region.limits(_weights(self.region, weights))

    def _unknown(self) -> FloatArray:
        return np.full(self.evidence.domain_size, math.nan)


def certify(
    oracle: FrequencyOracle,
    reports: "Reports | Callable[[], Iterable[Reports]] | ReportSource | Tally",
    malicious_share: float,
    confidence: float = 0.95,
    *,
    quarantined: int = 0,
    questions: Iterable[Iterable[int]] = (),
    seed: int | None = None,
) -> Certificate:
    """Return what a round proves, whatever malicious users sent.

    At most a `malicious_share` of the reports are malicious; all intervals hold together with the
    `confidence`, for any number of reports: they follow from Chernoff's bound for sums of unequal
    probabilities (Hoeffding 1963), not from a normal limit. `quarantined` reports are not among the
    others, and count as what they would change the most.

    A tally's counts take O(d). Packed reports, as `recover` takes them, prove more of totals,
    differences and shares; `lower` and `upper` are by their counts. They are read three times, take
    25 bytes of memory each, and need the extra `certify`. The `questions` are sets of items whose
    totals matter; these reports must not choose them. The items of the largest estimates need not
    be asked for.

    The `seed`, of 128 bits, draws which reports choose the tests: None draws it from the operating
    system, as it must be drawn after the last report; the certificate states it. With one seed the
    order of the reports does not matter.

    Raises ParameterError for no reports, a share outside [0, 1), a confidence outside [0.5, 1), and
    a protocol that is not pure.
    """
    if not oracle.traits.pure:
        raise ParameterError(f"{oracle.protocol} lacks one q for all items, which bounds need")
    check_share(malicious_share)
    check_confidence(confidence)
    d, error = oracle.domain_size, 1 - confidence
    if isinstance(reports, Tally):
        counts, n = reports.counts(oracle).astype(np.float64), reports.n + quarantined
        evidence, seed = Evidence(oracle, counts, n, error, quarantined), None
    else:
        source = reports if isinstance(reports, ReportSource) else ReportSource(oracle, reports)
        sets = [np.array(target_indices(items, d, ("item", "items"))) for items in questions]
        seed = secrets.randbits(SEED_BITS) if seed is None else seed
        evidence = report_evidence(source, sets, malicious_share, error, quarantined, seed)
    if evidence.n == quarantined:
        raise ParameterError("a certificate needs at least one report")
    return Certificate(evidence, malicious_share, confidence, seed)


def check_share(malicious_share: float) -> None:
    """Raise ParameterError unless it is a share of malicious reports, from 0 to below 1."""
    if not 0 <= malicious_share < 1:
        raise ParameterError(
            f"malicious_share must be at least 0 and below 1, not {malicious_share}"
        )


def check_confidence(confidence: float) -> None:
    """Raise ParameterError unless it is from 0.5 to below 1."""
    if not 0.5 <= confidence < 1:
        raise ParameterError(f"confidence must be at least 0.5 and below 1, not {confidence}")


def _indices(chosen: BoolArray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(chosen).tolist())

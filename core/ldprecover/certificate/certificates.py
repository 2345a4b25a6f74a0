"""Certificates: bounds on the frequencies of honest users that a round's reports prove."""

from __future__ import annotations

import math
import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ldprecover._checks import check_whole, real
from ldprecover.certificate.evidence import RoundEvidence
from ldprecover.certificate.region import Region
from ldprecover.certificate.reports import SEED_BITS, report_evidence
from ldprecover.errors import ParameterError
from ldprecover.items import target_indices
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.types import FloatArray, Reports

_HALVINGS = 30  # of a share: it is exact to 1e-9


class Claim(Protocol):
    """A statement on the frequencies that the reports may prove."""

    def holds(self, region: Region) -> bool:
        """Return whether it holds for all frequencies of a region."""


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

    evidence: RoundEvidence
    malicious_share: float
    confidence: float
    seed: int | None = None
    """The seed that drew which reports choose what is tested; None from counts."""

    def __repr__(self) -> str:
        return (
            f"Certificate({self.evidence.n:,} reports, {self.evidence.oracle.domain_size:,} items, "
            f"malicious share {self.malicious_share:g}, confidence {self.confidence:g})"
        )

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
        return self._intervals.lower

    @property
    def upper(self) -> FloatArray:
        """The upper ends."""
        return self._intervals.upper

    def total(self, items: Iterable[int], others: Iterable[int] = ()) -> tuple[float, float]:
        """Return the interval of the share of users who hold one of the items.

        With `others` it is the interval of this share less that of those who hold one of these.
        """
        return self._intervals.total(items, others)

    def difference(self, item: int, other: int) -> tuple[float, float]:
        """Return the interval of f(item) - f(other).

        In a round for numbers, `difference(1, 0)` is the interval of their mean.
        """
        return self.total((item,), (other,))

    def ranking(self, k: int) -> Ranking:
        """Return which items are among the first k, with certainty and possibly."""
        d, lower, upper = self.lower.size, self.lower, self.upper
        check_whole("k", k, 1, d)
        # An item is not its own rival. NaN sorts last: where nothing is known, d others may lead.
        rivals = d - np.searchsorted(np.sort(upper), lower, side="left") - (upper >= lower)
        ahead = d - np.searchsorted(np.sort(lower), upper, side="right")
        return Ranking(*(tuple(np.flatnonzero(x < k).tolist()) for x in (rivals, ahead)))

    @cached_property
    def least_malicious_share(self) -> float:
        """The share of the reports that are proven not to come from honest users."""
        return _first_share(lambda share: self.evidence.region(share) is not None)

    def tolerance(self, claim: Claim) -> float | None:
        """Return the largest share of malicious reports at which the claim is proven.

        None if it is not proven at `least_malicious_share`: then it is open.
        """

        def open_at(share: float) -> bool:
            region = self.evidence.region(share)
            return region is not None and not claim.holds(region)

        least = self.least_malicious_share + 2.0**-_HALVINGS
        return None if open_at(least) else _first_share(open_at)

    @property
    def assumption(self) -> str:
        """The assumption of the intervals, and their source, as text."""
        source = "Only the counts of the reports were read."
        if self.seed is not None:
            source = "All reports were read; the seed drew those that chose what is tested."
        return (
            f"If at most {100 * self.malicious_share:.3g} % of the {self.evidence.n:,} reports are "
            f"malicious, all of this holds together, with a confidence of "
            f"{100 * self.confidence:.4g} %, whatever these reports are; it is about the honest "
            f"users of this round. {source}"
        )

    @cached_property
    def _intervals(self) -> Region:
        """The region; NaN if it is empty."""
        unknown = np.full(self.evidence.counts.size, math.nan)
        return self.region or Region(unknown, unknown)


def _first_share(condition: Callable[[float], bool]) -> float:
    """Return the least share, rounded down, at which a condition holds that then stays true."""
    if condition(0.0):
        return 0.0
    steps = range(2**_HALVINGS)
    first = bisect_left(steps, True, lo=1, key=lambda i: condition(i / len(steps)))
    return (first - 1) / len(steps)


def certify(
    oracle: FrequencyOracle,
    reports: Reports | Callable[[], Iterable[Reports]] | ReportSource | Tally,
    malicious_share: float,
    confidence: float = 0.95,
    *,
    questions: Iterable[Iterable[int]] = (),
    seed: int | None = None,
) -> Certificate:
    """Return what a round proves, whatever malicious users sent.

    At most a `malicious_share` of the reports are malicious; all intervals hold together with the
    `confidence`, for any number of reports: they follow from Chernoff's bound for sums of unequal
    probabilities (Hoeffding 1963), not from a normal limit.

    A tally's counts take O(d). Packed reports, as `recover` takes them, prove more of totals,
    differences and shares; `lower` and `upper` are by their counts. They are read three times, take
    25 bytes of memory each, and need the extra `certify`. The `questions` are sets of items whose
    totals matter; these reports must not choose them. The items of the largest estimates need not
    be asked for.

    The `seed`, of 128 bits, draws which reports choose the tests: None draws it from the operating
    system, as it must be drawn after the last report; the certificate states it. With one seed the
    order of the reports does not matter.

    Raises ParameterError for no reports, a share outside [0, 1), and a confidence outside [0.5, 1).
    """
    malicious_share, confidence = check_share(malicious_share), real(confidence) or 0.0
    if not 0.5 <= confidence < 1:
        raise ParameterError(f"confidence must be at least 0.5 and below 1, not {confidence}")
    d, error = oracle.domain_size, 1 - confidence
    if isinstance(reports, Tally):
        counts, n = reports.counts(oracle).astype(np.float64), reports.n
        evidence, seed = RoundEvidence(oracle, counts, n, error), None
    else:
        source = ReportSource.of(oracle, reports)
        sets = [np.array(target_indices(items, d, ("item", "items"))) for items in questions]
        seed = secrets.randbits(SEED_BITS) if seed is None else check_whole("seed", seed, 0)
        evidence = report_evidence(source, sets, malicious_share, error, seed)
    if not evidence.n:
        raise ParameterError("a certificate needs at least one report")
    return Certificate(evidence, malicious_share, confidence, seed)


def check_share(share: float) -> float:
    """Return a share of malicious reports. Raises ParameterError unless it is from 0 to below 1."""
    number = real(share)
    if number is None or not 0 <= number < 1:
        raise ParameterError(f"malicious_share must be at least 0 and below 1, not {share}")
    return number

"""Questions to a certificate and the numbers that answer them; workers import no Pydantic."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ldprecover import ParameterError, Tally
from ldprecover.certificate import Ahead, AmongFirst, Certificate, Claim, MoreThan, certify
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import ReportSource
from ldprecover.types import FloatArray


@dataclass(frozen=True)
class Answer:
    """The numbers that answer a question about one claim.

    `holds_in_estimate` says whether the claim holds for the estimates, `tolerance` is the largest
    share of malicious reports at which it is proven, and `certified` says whether it is at the
    assumed share. The others have their defaults where a question has no such numbers.
    """

    certified: bool
    tolerance: float | None
    holds_in_estimate: bool
    estimate: float = 0.0
    lower: float = 0.0
    upper: float = 0.0
    items: tuple[int, ...] = ()
    certain: tuple[int, ...] = ()
    possible: tuple[int, ...] = ()


class Question(Protocol):
    """A question about one claim."""

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of items whose totals matter to the answer."""

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Answer:
        """Return the answer of a possible certificate. Raises ParameterError."""


@dataclass(frozen=True)
class ShareOf:
    """How many users hold one of the items, and is it more than a share?"""

    items: tuple[int, ...]
    more_than: float = 0.0

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        return (self.items,)

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Answer:
        estimate = float(estimates[list(self.items)].sum())
        lower, upper = certificate.total(self.items)
        proof = _proof(certificate, MoreThan(self.items, self.more_than))
        # Sums of ends may leave [0, 1] by their rounding.
        return Answer(*proof, estimate > self.more_than, estimate, max(lower, 0.0), min(upper, 1.0))


@dataclass(frozen=True)
class LeadOf:
    """By how much is an item ahead of another, and is it?"""

    item: int
    other: int

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        return (self.item,), (self.other,)

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Answer:
        estimate = float(estimates[self.item] - estimates[self.other])
        lower, upper = certificate.difference(self.item, self.other)
        proof = _proof(certificate, Ahead(self.item, self.other))
        return Answer(*proof, estimate > 0, estimate, lower, upper)


@dataclass(frozen=True)
class First:
    """Which items are the first k, and are they those of the k largest estimates?"""

    k: int

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        return ()

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Answer:
        ranking = certificate.ranking(self.k)
        items = tuple(np.argsort(-estimates, kind="stable")[: self.k].tolist())
        proof = _proof(certificate, AmongFirst(items, self.k))
        return Answer(*proof, True, items=items, certain=ranking.certain, possible=ranking.possible)


@dataclass(frozen=True)
class MeanOf:
    """What is the mean of the users' numbers, and is it above a number?"""

    above: float

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        return ((1,),)

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Answer:
        lower, upper = certificate.difference(1, 0)
        proof = _proof(certificate, Ahead(1, 0, by=self.above))
        estimate = float(estimates[1] - estimates[0])
        # Sums of ends may leave [-1, 1] by their rounding.
        limits = max(lower, -1.0), min(upper, 1.0)
        return Answer(*proof, estimate > self.above, estimate, *limits)


AnyQuestion = ShareOf | LeadOf | First | MeanOf


def _proof(certificate: Certificate, claim: Claim) -> tuple[bool, float | None]:
    tolerance, region = certificate.tolerance(claim), certificate.region
    return tolerance is not None and region is not None and claim.holds(region), tolerance


@dataclass(frozen=True, eq=False)
class CertificateResult:
    """A certificate in numbers; without intervals and answers if its share is impossible.

    `seed` is that of a certificate from reports, in hex; None from counts.
    """

    n: int
    malicious_share: float
    confidence: float
    events: int
    seed: str | None
    assumption: str
    least_malicious_share: float
    lower: FloatArray | None
    upper: FloatArray | None
    answers: tuple[Answer, ...] = ()

    @property
    def is_possible(self) -> bool:
        """Whether the reports do not prove that more of them are malicious than assumed."""
        return self.lower is not None


def share_of_tickets(tickets: int, n: int) -> float:
    """Return the share of the n reports that these tickets can admit. Raises ParameterError."""
    if tickets >= n:
        raise ParameterError(
            f"malicious_tickets must be below the number of reports, {n:,}, not {tickets:,}"
        )
    return tickets / n


def certificate_result(
    oracle: FrequencyOracle,
    tally: Tally,
    malicious_share: float,
    confidence: float,
    questions: tuple[Question, ...],
    reports: ReportSource | None = None,
    seed: str | None = None,
) -> CertificateResult:
    """Return the certificate of a round with answers to questions.

    It is from the `reports` and their `seed`, 128 bits in hex, or without these from the counts.
    Raises ParameterError as `certify` does.
    """
    certificate = certify(
        oracle,
        tally if reports is None else reports,
        malicious_share,
        confidence,
        questions=dict.fromkeys(items for each in questions for items in each.sets),
        seed=None if seed is None else int(seed, 16),
    )
    estimates = oracle.estimate(tally.counts(oracle), tally.n)
    is_possible = certificate.is_possible
    answers = [each.answer(certificate, estimates) for each in (questions if is_possible else ())]
    return CertificateResult(
        n=certificate.evidence.n,
        malicious_share=malicious_share,
        confidence=confidence,
        events=certificate.evidence.events,
        seed=None if certificate.seed is None else f"{certificate.seed:032x}",
        assumption=certificate.assumption,
        least_malicious_share=certificate.least_malicious_share,
        lower=certificate.lower if is_possible else None,
        upper=certificate.upper if is_possible else None,
        answers=tuple(answers),
    )

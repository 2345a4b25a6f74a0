"""Questions to a certificate and the numbers that answer them; workers import no Pydantic."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ldprecover import ParameterError, Tally
from ldprecover.certificate import Ahead, AmongFirst, Certificate, Claim, MoreThan, certify
from ldprecover.protocols import FrequencyOracle
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

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Answer:
        """Return the answer of a possible certificate. Raises ParameterError."""


@dataclass(frozen=True)
class ShareOf:
    """How many users hold one of the items, and is it more than a share?"""

    items: tuple[int, ...]
    more_than: float = 0.0

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

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Answer:
        estimate = float(estimates[self.item] - estimates[self.other])
        lower, upper = certificate.difference(self.item, self.other)
        proof = _proof(certificate, Ahead(self.item, self.other))
        return Answer(*proof, estimate > 0, estimate, lower, upper)


@dataclass(frozen=True)
class First:
    """Which items are the first k, and are they those of the k largest estimates?"""

    k: int

    def answer(self, certificate: Certificate, estimates: FloatArray) -> Answer:
        ranking = certificate.ranking(self.k)
        items = tuple(np.argsort(-estimates, kind="stable")[: self.k].tolist())
        proof = _proof(certificate, AmongFirst(items, self.k))
        return Answer(*proof, True, items=items, certain=ranking.certain, possible=ranking.possible)


def _proof(certificate: Certificate, claim: Claim) -> tuple[bool, float | None]:
    tolerance, region = certificate.tolerance(claim), certificate.region
    return tolerance is not None and region is not None and claim.holds(region), tolerance


@dataclass(frozen=True, eq=False)
class CertificateResult:
    """A certificate in numbers; without intervals and answers if its share is impossible."""

    n: int
    quarantined: int
    malicious_share: float
    confidence: float
    events: int
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
    quarantined: int,
    malicious_share: float,
    confidence: float,
    questions: tuple[Question, ...],
) -> CertificateResult:
    """Return the certificate of a round's counts with answers to questions.

    Raises ParameterError as `certify` does.
    """
    certificate = certify(oracle, tally, malicious_share, confidence, quarantined=quarantined)
    estimates = oracle.estimate(tally.counts(oracle), tally.n)
    is_possible = certificate.is_possible
    return CertificateResult(
        n=certificate.evidence.n,
        quarantined=quarantined,
        malicious_share=malicious_share,
        confidence=confidence,
        events=certificate.evidence.events,
        assumption=certificate.assumption,
        least_malicious_share=certificate.least_malicious_share,
        lower=certificate.lower if is_possible else None,
        upper=certificate.upper if is_possible else None,
        answers=tuple(each.answer(certificate, estimates) for each in questions)
        if is_possible
        else (),
    )

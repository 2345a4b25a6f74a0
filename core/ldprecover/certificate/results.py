"""Answers to questions about a round, in numbers and sentences.

Workers of a server import this module, which imports no Pydantic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldprecover.certificate.certificates import certify
from ldprecover.certificate.questions import Fields, Question
from ldprecover.errors import ParameterError
from ldprecover.estimation.means import ITEMS
from ldprecover.items import isolated
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.sentences import DOWN, UP, listed, number, percent, points, proven_sentence
from ldprecover.types import FloatArray


@dataclass(frozen=True, kw_only=True)
class ResultSentences:
    """What a certificate says: one sentence or two for each answer; what the assumed share of
    malicious reports leaves open; and the proven share, None without any.
    """

    answers: list[str]
    bound: str
    proven: str | None


@dataclass(frozen=True, eq=False, kw_only=True)
class CertificateResult:
    """A certificate in numbers: the fields of a response, but for the round and its items.

    `lower` and `upper` are None, and there are no answers, if the share is impossible.
    """

    n: int
    malicious_share: float
    confidence: float
    events: int
    from_reports: bool
    seed: str | None
    assumption: str
    least_malicious_share: float
    lower: FloatArray | None
    upper: FloatArray | None
    answers: list[Fields]

    @property
    def mean(self) -> tuple[float, float]:
        """The interval of the mean in a round for numbers: f(1) - f(-1) is 2 f(1) - 1."""
        lower, upper = self.intervals
        return float(2 * lower[1] - 1), float(2 * upper[1] - 1)

    def sentences(self, labels: Sequence[str]) -> ResultSentences:
        """Return what the certificate says. Raises ImpossibleShareError."""
        lower, upper = self.intervals
        if tuple(labels) == ITEMS:
            low, high = self.mean
            unknown = (
                "the mean of the honest users' numbers is only known to be between "
                f"{number(low, DOWN)} and {number(high, UP)}"
            )
        else:
            widest = float((upper - lower).max())
            unknown = f"an item's share is only known to within {points(widest, UP)} points"
        proven = self.least_malicious_share
        return ResultSentences(
            answers=[self._answer(each, labels) for each in self.answers],
            bound=f"If {percent(self.malicious_share)} of the reports are malicious, {unknown}.",
            proven=proven_sentence(proven) if proven else None,
        )

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """The ends of all intervals. Raises ImpossibleShareError."""
        if self.lower is None or self.upper is None:
            raise ImpossibleShareError(self)
        return self.lower, self.upper

    def _answer(self, answer: Fields, labels: Sequence[str]) -> str:
        """Return what is proven of the claim of a question."""
        estimate = answer.get("estimate", 0.0)
        if "top" in answer:
            first = listed([labels[item] for item in answer["items"]])
            k = answer["top"]
            claim = f"{first} leads" if k == 1 else f"The first {k:,} are {first}"
            return self._proof(claim, answer, is_estimated=True)
        if "ahead" in answer:
            item, other = (isolated(labels[item]) for item in answer["ahead"])
            return self._proof(f"{item} is ahead of {other}", answer, is_estimated=estimate > 0)
        if "mean_above" in answer:
            least = answer["mean_above"]
            claim = f"The mean is above {number(least)}"
            return self._proof(claim, answer, is_estimated=estimate > least)
        least = answer["more_than"]
        holders = f"of the honest users hold {listed([labels[i] for i in answer['items']], 'or')}"
        ends = f"{points(answer['lower'], DOWN)} and {percent(answer['upper'], UP)}"
        total = f"Between {ends} {holders}."
        if not least:
            return total
        claim = f"More than {percent(least)} {holders}"
        return f"{total} {self._proof(claim, answer, is_estimated=estimate > least)}"

    def _proof(self, claim: str, answer: Fields, *, is_estimated: bool) -> str:
        """Return a claim with the share up to which it is proven.

        `is_estimated` says whether it holds among the estimates.
        """
        if answer["tolerance"] is not None:
            tolerance = percent(answer["tolerance"], DOWN)
            if answer["certified"]:
                return (
                    f"{claim}. That holds even if up to {tolerance} of the reports are malicious."
                )
            assumed = percent(self.malicious_share)
            return (
                f"{claim} if at most {tolerance} of the reports are malicious, but this is not "
                f"certain if {assumed} are."
            )
        if not is_estimated:
            return f"Not certified, and not so among the numbers as collected: {claim}."
        cause = "the noise of honest reports is"
        if self.least_malicious_share:
            cause = "the reports that are proven to be malicious are"
        return (
            f"{claim} among the numbers as collected, but this is not certain: "
            f"{cause} enough to change it."
        )


class ImpossibleShareError(ParameterError):
    """The reports prove that more of them are malicious than assumed."""

    def __init__(self, result: CertificateResult) -> None:
        self.least_malicious_share = result.least_malicious_share
        super().__init__(
            f"nothing is certified if at most {percent(result.malicious_share)} of all reports are "
            f"malicious: they prove that at least {percent(result.least_malicious_share, DOWN)} are"
        )


def certificate_result(
    oracle: FrequencyOracle,
    tally: Tally,
    reports: ReportSource | None = None,
    *,
    malicious_share: float | None = None,
    malicious_tickets: int | None = None,
    confidence: float,
    questions: Sequence[Question],
    seed: str | None = None,
) -> CertificateResult:
    """Return the certificate of a round with answers to questions.

    The share of malicious reports is given, or else is that of the tickets of malicious users. The
    certificate is from the `reports` and their `seed`, 128 bits in hex, or without these from the
    counts. Raises ParameterError as `certify` does, and for as many tickets as reports.
    """
    if malicious_share is None:
        malicious_tickets = malicious_tickets or 0
        if malicious_tickets >= tally.n:
            raise ParameterError(
                f"malicious_tickets must be below the number of reports, {tally.n:,}, not "
                f"{malicious_tickets:,}"
            )
        malicious_share = malicious_tickets / tally.n
    certificate = certify(
        oracle,
        tally if reports is None else reports,
        malicious_share,
        confidence,
        questions=dict.fromkeys(items for each in questions for items in each.sets),
        seed=None if seed is None else int(seed, 16),
    )
    estimates = tally.frequencies(oracle)
    is_possible = certificate.is_possible
    return CertificateResult(
        n=certificate.evidence.n,
        malicious_share=malicious_share,
        confidence=confidence,
        events=certificate.evidence.events,
        from_reports=certificate.seed is not None,
        seed=None if certificate.seed is None else f"{certificate.seed:032x}",
        assumption=certificate.assumption,
        least_malicious_share=certificate.least_malicious_share,
        lower=certificate.lower if is_possible else None,
        upper=certificate.upper if is_possible else None,
        answers=[each.answer(certificate, estimates) for each in questions] if is_possible else [],
    )

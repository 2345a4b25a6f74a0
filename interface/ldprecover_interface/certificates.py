"""Certificates: the request, and the response with its sentences."""

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from ldprecover.errors import ParameterError
from ldprecover.items import find_items
from ldprecover.rounds.export import RoundExport
from ldprecover_interface.base import MAX_QUESTIONS, Count, Message, Request, Text
from ldprecover_interface.questions import (
    Answer,
    CertificateResult,
    First,
    LeadOf,
    ShareOf,
    certificate_result,
    share_of_tickets,
)
from ldprecover_interface.results import Column
from ldprecover_interface.rounds import Items

_SHOWN = 10  # labels in a sentence
_DIGITS = 3  # of a number in a sentence

Item = str | int
Indices = Annotated[list[Annotated[int, Field(ge=0)]], Field(fail_fast=True)]


class QuestionRequest(Request):
    """A question about one claim. Give one of `items`, `ahead` and `top`."""

    # One model: each member of a union would report every unknown field of a large body.
    items: Annotated[list[Item], Field(fail_fast=True, min_length=1)] | None = Field(
        default=None,
        description="Labels or indices. How many honest users hold one of these items? The claim: "
        "more than the share `more_than` of them.",
    )
    more_than: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        default=None, description="Only with `items`; 0 by default."
    )
    ahead: Annotated[list[Item], Field(fail_fast=True, min_length=2, max_length=2)] | None = Field(
        default=None,
        description="Two items, labels or indices. By how much is the first ahead of the second? "
        "The claim: more honest users hold it.",
    )
    top: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="A number k. Which items are the first k? The claim: those with the k largest "
        "estimates.",
    )

    @model_validator(mode="after")
    def _check_kind(self) -> "QuestionRequest":
        if [self.items, self.ahead, self.top].count(None) != 2:
            raise ValueError("must have one of items, ahead and top")
        if self.more_than is not None and self.items is None:
            raise ValueError("must have more_than only with items")
        return self

    def question(self, labels: Sequence[str]) -> ShareOf | LeadOf | First:
        """Return the question about the items of a round. Raises ParameterError."""
        if self.items is not None:
            items = find_items(self.items, labels, "questions: items")
            return ShareOf(tuple(sorted(set(items))), self.more_than or 0.0)
        if self.ahead is not None:
            item, other = find_items(self.ahead, labels, "questions: ahead")
            if item == other:
                raise ParameterError("questions: ahead: the two items must differ")
            return LeadOf(item, other)
        assert self.top is not None
        if self.top > len(labels):
            raise ParameterError(
                f"questions: top must be at most the {len(labels)} items, not {self.top}"
            )
        return First(self.top)


class CertificateRequest(Request):
    """What to assume, and what to ask. Give either `malicious_share` or `malicious_tickets`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "malicious_share": 0.01,
                    "questions": [
                        {"items": ["New York, NY", 5]},
                        {"ahead": ["New York, NY", "Chicago, IL"]},
                        {"top": 3},
                    ],
                }
            ]
        }
    )

    malicious_share: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        default=None, description="The largest share of malicious reports among all."
    )
    malicious_tickets: Count | None = Field(
        default=None,
        description="For rounds of tickets: the largest number of tickets that malicious users "
        "hold. Each admits one report.",
    )
    confidence: float = Field(
        default=0.95,
        ge=0.5,
        lt=1,
        description="Least probability with which all that the certificate states holds together.",
    )
    questions: Annotated[list[QuestionRequest], Field(fail_fast=True, max_length=MAX_QUESTIONS)] = (
        Field(default=[], description="Each is about one claim.")
    )

    @model_validator(mode="after")
    def _check_assumption(self) -> "CertificateRequest":
        if (self.malicious_share is None) is (self.malicious_tickets is None):
            raise ValueError("must have either malicious_share or malicious_tickets")
        return self

    def share(self, n: int) -> float:
        """Return the share of n reports. Raises ParameterError."""
        if self.malicious_share is not None:
            return self.malicious_share
        assert self.malicious_tickets is not None
        return share_of_tickets(self.malicious_tickets, n)

    def core_questions(self, labels: Sequence[str]) -> tuple[ShareOf | LeadOf | First, ...]:
        """Return the questions about the items of a round. Raises ParameterError."""
        return tuple(each.question(labels) for each in self.questions)


class _Answer(Message):
    certified: bool = Field(
        description="Whether the claim is proven, if no more reports are malicious than assumed."
    )
    tolerance: float | None = Field(
        description="The largest share of malicious reports at which the claim is proven; null if "
        "it is proven at no share that the reports allow."
    )
    sentence: Text = Field(description="The answer as text.")


class _IntervalAnswer(_Answer):
    estimate: float = Field(description="Unbiased if all reports are honest.")
    lower: float
    upper: float


class ItemsAnswer(_IntervalAnswer):
    """The share of the honest users who hold one of the items."""

    items: Annotated[Indices, Field(description="Indices, sorted.")]
    more_than: float


class AheadAnswer(_IntervalAnswer):
    """The frequency of the first item minus that of the second, among the honest users."""

    ahead: Annotated[Indices, Field(description="The indices of the two items.")]


class TopAnswer(_Answer):
    """Which items are the first k."""

    top: int
    items: Annotated[Indices, Field(description="The k largest estimates, the largest first.")]
    certain: Annotated[Indices, Field(description="Items that are proven to be among the first k.")]
    possible: Annotated[Indices, Field(description="Items that may be among the first k.")]


class Certified(Message):
    """What a round proves, whatever malicious users sent.

    Everything holds together with the confidence, and only if the share of malicious reports is not
    larger than assumed; the tolerances and `least_malicious_share` hold at any share.
    """

    round: Text
    n: int = Field(ge=1, lt=1 << 63, description="Number of reports, quarantined ones included.")
    quarantined: Count = Field(
        description="Reports in quarantine: they may be honest, and support anything."
    )
    malicious_share: float
    confidence: float
    events: Count = Field(description="Number of events whose probabilities are bounded.")
    assumption: Text = Field(description="What the intervals assume, as text.")
    least_malicious_share: float = Field(
        description="Share of the reports that are proven not to come from honest users."
    )
    items: Items
    lower: Annotated[Column, Field(description="Lower ends of the frequencies' intervals.")]
    upper: Annotated[Column, Field(description="Upper ends.")]
    answers: list[ItemsAnswer | AheadAnswer | TopAnswer] = Field(
        description="In the order of the questions."
    )


class ImpossibleShareError(ParameterError):
    """The reports prove that more of them are malicious than assumed."""

    def __init__(self, result: CertificateResult) -> None:
        self.least_malicious_share = result.least_malicious_share
        super().__init__(
            "nothing is certified: the reports prove that at least "
            f"{percent(result.least_malicious_share, ROUND_FLOOR)} of them are not honest users', "
            f"and malicious_share is {percent(result.malicious_share)}"
        )


def certified(
    round: str,
    result: CertificateResult,
    questions: Iterable[ShareOf | LeadOf | First],
    labels: Sequence[str],
) -> Certified:
    """Return the response with the answers' sentences. Raises ImpossibleShareError."""
    if result.lower is None or result.upper is None:
        raise ImpossibleShareError(result)
    return Certified.model_construct(
        round=round,
        n=result.n,
        quarantined=result.quarantined,
        malicious_share=result.malicious_share,
        confidence=result.confidence,
        events=result.events,
        assumption=result.assumption,
        least_malicious_share=result.least_malicious_share,
        items=labels,
        lower=result.lower.tolist(),
        upper=result.upper.tolist(),
        answers=[
            _answer(question, answer, result, labels)
            for question, answer in zip(questions, result.answers, strict=True)
        ],
    )


def certify_export(export: RoundExport, request: CertificateRequest) -> Certified:
    """Return the response that the server of an exported round gives to the request.

    Raises ImpossibleShareError, and ParameterError also for a round without reports.
    """
    parameters, quarantined = export.parameters, export.quarantined
    excluded = 0 if quarantined is None else quarantined.sizes + (quarantined.seeds or 0)
    questions = request.core_questions(parameters.items)
    result = certificate_result(
        parameters.oracle,
        export.tally,
        excluded,
        request.share(export.tally.n + excluded),
        request.confidence,
        questions,
    )
    return certified(export.round, result, questions, parameters.items)


def percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a share in percent with three digits: 0.0281 is 2.81 %."""
    return f"{_rounded(share, rounding)} %"


def _rounded(share: float, rounding: str) -> str:
    context = Context(prec=_DIGITS, rounding=rounding)
    return f"{context.create_decimal(100 * Decimal(repr(share))).normalize() + 0:f}"


def _answer(
    question: ShareOf | LeadOf | First,
    answer: Answer,
    result: CertificateResult,
    labels: Sequence[str],
) -> ItemsAnswer | AheadAnswer | TopAnswer:
    proof: dict[str, Any] = {"certified": answer.certified, "tolerance": answer.tolerance}
    limits: dict[str, Any] = {
        "estimate": answer.estimate,
        "lower": answer.lower,
        "upper": answer.upper,
    }
    match question:
        case ShareOf(items, more_than):
            names = _listed(items, labels, "or")
            text = (
                f"If at most {percent(result.malicious_share)} of all reports were forged, between "
                f"{_rounded(answer.lower, ROUND_FLOOR)} and {percent(answer.upper, ROUND_CEILING)} "
                f"of the honest users hold {names}."
            )
            if more_than:
                claim = f"More than {percent(more_than)} of the honest users hold {names}"
                text = f"{text} {_sentence(claim, answer, result)}"
            return ItemsAnswer.model_construct(
                items=items, more_than=more_than, sentence=text, **limits, **proof
            )
        case LeadOf(item, other):
            text = _sentence(f"{labels[item]} is ahead of {labels[other]}", answer, result)
            return AheadAnswer.model_construct(
                ahead=[item, other], sentence=text, **limits, **proof
            )
        case First(k):
            first = _listed(answer.items, labels, "and")
            claim = f"{first} is the first" if k == 1 else f"The first {k} are {first}"
            return TopAnswer.model_construct(
                top=k,
                items=answer.items,
                certain=answer.certain,
                possible=answer.possible,
                sentence=_sentence(claim, answer, result),
                **proof,
            )


def _sentence(claim: str, answer: Answer, result: CertificateResult) -> str:
    """Return a claim with what is proven of it."""
    least = percent(result.least_malicious_share, ROUND_FLOOR)
    attacked = result.least_malicious_share > 0
    if answer.tolerance is not None:
        tolerance = percent(answer.tolerance, ROUND_FLOOR)
        proven = f"; the reports prove that at least {least} were" if attacked else ""
        if not answer.certified:
            return (
                f"{claim} if at most {tolerance} of all reports were forged, but this is not "
                f"certain if {percent(result.malicious_share)} were{proven}."
            )
        return f"{claim}. That holds even if up to {tolerance} of all reports were forged{proven}."
    if not answer.holds_in_estimate:
        return f"Not certified, and not so in the estimate: {claim}."
    cause = (
        f"the reports prove that at least {least} of them were not honest, which is enough to "
        "change it"
        if attacked
        else "the noise of honest reports is enough to change it"
    )
    return f"{claim} in the estimate, but this is not certain: {cause}."


def _listed(items: Sequence[int], labels: Sequence[str], conjunction: str) -> str:
    """Return labels as text: a; b and c."""
    names = [labels[item] for item in items[:_SHOWN]]
    if len(items) > _SHOWN:
        names.append(f"{len(items) - _SHOWN} more")
    *others, last = names
    return f"{'; '.join(others)} {conjunction} {last}" if others else last

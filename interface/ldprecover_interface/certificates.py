"""Certificates: the request, and the response with its sentences."""

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from ldprecover.errors import ParameterError
from ldprecover.items import find_items
from ldprecover.recovery import ReportSource
from ldprecover.rounds.export import RoundExport
from ldprecover.rounds.means import ITEMS
from ldprecover_interface.base import MAX_QUESTIONS, Count, Message, Request, Text, optional
from ldprecover_interface.questions import (
    Answer,
    AnyQuestion,
    CertificateResult,
    First,
    LeadOf,
    MeanOf,
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
    """A question about one claim. Give one of `items`, `ahead`, `top` and `mean_above`."""

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

    mean_above: Annotated[float, Field(ge=-1, lt=1)] | None = Field(
        default=None,
        description='For rounds over the items "-1" and "1": a number t. What is the mean of the '
        "honest users' numbers? The claim: it is above t.",
    )

    @model_validator(mode="after")
    def _check_kind(self) -> "QuestionRequest":
        if [self.items, self.ahead, self.top, self.mean_above].count(None) != 3:
            raise ValueError("must have one of items, ahead, top and mean_above")
        if self.more_than is not None and self.items is None:
            raise ValueError("must have more_than only with items")
        return self

    def question(self, labels: Sequence[str]) -> AnyQuestion:
        """Return the question about the items of a round. Raises ParameterError."""
        if self.items is not None:
            items = find_items(self.items, labels, "questions: items")
            return ShareOf(tuple(sorted(set(items))), self.more_than or 0.0)
        if self.ahead is not None:
            item, other = find_items(self.ahead, labels, "questions: ahead")
            if item == other:
                raise ParameterError("questions: ahead: the two items must differ")
            return LeadOf(item, other)
        if self.mean_above is not None:
            if tuple(labels) != ITEMS:
                raise ParameterError(
                    f"questions: mean_above: the items must be {' and '.join(ITEMS)}"
                )
            return MeanOf(self.mean_above)
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
    reports: bool = Field(
        default=False,
        description="Whether to read the reports, not only their counts. Only of closed rounds "
        "that store all of their reports.",
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

    def core_questions(self, labels: Sequence[str]) -> tuple[AnyQuestion, ...]:
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


class MeanAnswer(_IntervalAnswer):
    """The mean of the honest users' numbers from -1 to 1."""

    mean_above: float


class CertifiedMean(Message):
    """The interval of the mean of the honest users' numbers from -1 to 1."""

    lower: float
    upper: float


class Certified(Message):
    """What a round proves, whatever malicious users sent.

    Everything holds together with the confidence, and only if the share of malicious reports is not
    larger than assumed; the tolerances and `least_malicious_share` hold at any share.
    """

    model_config = ConfigDict(json_schema_extra=optional("mean"))

    round: Text
    n: int = Field(ge=1, lt=1 << 63, description="Number of reports.")
    malicious_share: float
    confidence: float
    events: Count = Field(description="Number of events whose probabilities are bounded.")
    from_reports: bool = Field(description="Whether the reports were read, not only their counts.")
    seed: Text | None = Field(
        description="The 128 random bits, in hex, that split the reports; null from counts. Drawn "
        "when the round was closed, and the same in all of its certificates."
    )
    assumption: Text = Field(description="What the intervals assume, as text.")
    least_malicious_share: float = Field(
        description="Share of the reports that are proven not to come from honest users."
    )
    items: Items
    lower: Annotated[Column, Field(description="Lower ends of the frequencies' intervals.")]
    upper: Annotated[Column, Field(description="Upper ends.")]
    answers: list[ItemsAnswer | AheadAnswer | TopAnswer | MeanAnswer] = Field(
        description="In the order of the questions."
    )
    mean: CertifiedMean | None = Field(
        default=None, description='Only for rounds over the items "-1" and "1".'
    )


class ImpossibleShareError(ParameterError):
    """The reports prove that more of them are malicious than assumed."""

    def __init__(self, result: CertificateResult) -> None:
        self.least_malicious_share = result.least_malicious_share
        super().__init__(
            f"nothing is certified if {_forged(result.malicious_share)}: the reports prove that at "
            f"least {percent(result.least_malicious_share, ROUND_FLOOR)} of them were not honest"
        )


def certified(
    round: str, result: CertificateResult, questions: Iterable[AnyQuestion], labels: Sequence[str]
) -> Certified:
    """Return the response with the answers' sentences. Raises ImpossibleShareError."""
    if result.lower is None or result.upper is None:
        raise ImpossibleShareError(result)
    lower, upper = result.lower.tolist(), result.upper.tolist()
    optional_fields: dict[str, Any] = {}
    if tuple(labels) == ITEMS:
        # The mean f(1) - f(-1) is 2 f(1) - 1.
        mean = CertifiedMean(lower=2 * lower[1] - 1, upper=2 * upper[1] - 1)
        optional_fields["mean"] = mean
    return Certified.model_construct(
        round=round,
        n=result.n,
        malicious_share=result.malicious_share,
        confidence=result.confidence,
        events=result.events,
        from_reports=result.seed is not None,
        seed=result.seed,
        assumption=result.assumption,
        least_malicious_share=result.least_malicious_share,
        items=labels,
        lower=lower,
        upper=upper,
        answers=[
            _answer(question, answer, result, labels)
            for question, answer in zip(questions, result.answers, strict=True)
        ],
        **optional_fields,
    )


def certify_export(
    export: RoundExport, request: CertificateRequest, reports: ReportSource | None = None
) -> Certified:
    """Return the response that the server of an exported round gives to the request.

    A request from reports needs all `reports` of the round, unless the tally is their histogram.
    Raises ImpossibleShareError, and
    ParameterError also for a round without reports, and one that was open when it was exported.
    """
    parameters = export.parameters
    if request.reports and reports is None and parameters.oracle.traits.histogram:
        reports = ReportSource.of_tally(parameters.oracle, export.tally)
    if request.reports and (reports is None or export.seed is None):
        raise ParameterError("a certificate from reports needs the reports of a closed round")
    questions = request.core_questions(parameters.items)
    result = certificate_result(
        parameters.oracle,
        export.tally,
        request.share(export.tally.n),
        request.confidence,
        questions,
        *((reports, export.seed) if request.reports else ()),
    )
    return certified(export.round, result, questions, parameters.items)


def percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a share in percent with three digits: 0.0281 is 2.81 %."""
    return f"{_rounded(share, rounding)} %"


def number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number with three digits."""
    return _digits(Decimal(repr(value)), rounding)


def _rounded(share: float, rounding: str) -> str:
    return _digits(100 * Decimal(repr(share)), rounding)


def _digits(value: Decimal, rounding: str) -> str:
    context = Context(prec=_DIGITS, rounding=rounding)
    return f"{context.create_decimal(value).normalize() + 0:f}"


def _answer(
    question: AnyQuestion, answer: Answer, result: CertificateResult, labels: Sequence[str]
) -> ItemsAnswer | AheadAnswer | TopAnswer | MeanAnswer:
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
                f"If {_forged(result.malicious_share)}, between "
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
        case MeanOf(above):
            text = (
                f"If {_forged(result.malicious_share)}, the "
                f"mean of the honest users' numbers is between {number(answer.lower, ROUND_FLOOR)} "
                f"and {number(answer.upper, ROUND_CEILING)}."
            )
            text = f"{text} {_sentence(f'The mean is above {number(above)}', answer, result)}"
            return MeanAnswer.model_construct(mean_above=above, sentence=text, **limits, **proof)
        case First(k):
            first = _listed(answer.items, labels, "and")
            claim = f"{first} leads" if k == 1 else f"The first {k} are {first}"
            return TopAnswer.model_construct(
                top=k,
                items=answer.items,
                certain=answer.certain,
                possible=answer.possible,
                sentence=_sentence(claim, answer, result),
                **proof,
            )


def _forged(share: float) -> str:
    return (
        f"at most {percent(share)} of all reports were forged" if share else "no report was forged"
    )


def _sentence(claim: str, answer: Answer, result: CertificateResult) -> str:
    """Return a claim with what is proven of it."""
    least = percent(result.least_malicious_share, ROUND_FLOOR)
    attacked, share = result.least_malicious_share > 0, answer.tolerance
    tolerance = least if share is None else percent(share, ROUND_FLOOR)
    if answer.certified:
        proven = f"; the reports prove that at least {least} were" if attacked else ""
        return f"{claim}. That holds even if up to {tolerance} of all reports were forged{proven}."
    if share is not None and not attacked:
        return (
            f"{claim} if at most {tolerance} of all reports were forged, but this is not certain "
            f"if {percent(result.malicious_share)} were."
        )
    if not answer.holds_in_estimate:
        return f"Not certified, and not so among the numbers as collected: {claim}."
    cause = "the noise of honest reports is enough to change it"
    if attacked:
        enough = f"and {tolerance} would be" if tolerance != least else "which is"
        cause = (
            f"the reports prove that at least {least} of them were not honest, {enough} enough to "
            "change it"
        )
    return f"{claim} among the numbers as collected, but this is not certain: {cause}."


def _listed(items: Sequence[int], labels: Sequence[str], conjunction: str) -> str:
    """Return labels as text: a; b and c."""
    names = [labels[item] for item in items[:_SHOWN]]
    if len(items) > _SHOWN:
        names.append(f"{len(items) - _SHOWN} more")
    *others, last = names
    return f"{'; '.join(others)} {conjunction} {last}" if others else last

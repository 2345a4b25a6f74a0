"""Certificates: the request and the response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from ldprecover.errors import ParameterError
from ldprecover_interface.base import (
    MAX_QUESTIONS,
    Column,
    Count,
    Message,
    Request,
    Text,
    Window,
    optional,
)
from ldprecover_interface.results import Columns, RoundResult, plain_column
from ldprecover_interface.rounds import Items

if TYPE_CHECKING:  # a client of a server computes no certificate
    from ldprecover.certificate.results import CertificateResult
    from ldprecover.reports import ReportSource
    from ldprecover.rounds.export import RoundExport

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
    def _check_kind(self) -> QuestionRequest:
        if [self.items, self.ahead, self.top, self.mean_above].count(None) != 3:
            raise ValueError("must have one of items, ahead, top and mean_above")
        if self.more_than is not None and self.items is None:
            raise ValueError("must have more_than only with items")
        return self


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
        "hold.",
    )
    window: Window = 1
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
    def _check_assumption(self) -> CertificateRequest:
        if (self.malicious_share is None) is (self.malicious_tickets is None):
            raise ValueError("must have either malicious_share or malicious_tickets")
        return self

    def core_arguments(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of `certificate_result` about these items. Raises ParameterError."""
        from ldprecover.certificate.questions import parse_question

        fields = (each.model_dump(exclude_none=True) for each in self.questions)
        return {
            "malicious_share": self.malicious_share,
            "malicious_tickets": self.malicious_tickets,
            "confidence": self.confidence,
            "questions": tuple(parse_question(labels, each) for each in fields),
        }


class Answer(Message):
    """The answer to a question, with the fields of its kind.

    Of `items`, `ahead` and `mean_above` it has an interval; of `top` it has the three lists.
    """

    model_config = ConfigDict(
        json_schema_extra=optional(
            *("estimate", "lower", "upper", "items", "more_than", "ahead", "mean_above"),
            *("top", "certain", "possible"),
        )
    )

    certified: bool = Field(
        description="Whether the claim is proven, if no more reports are malicious than assumed."
    )
    tolerance: float | None = Field(
        description="The largest share of malicious reports at which the claim is proven; null if "
        "it is proven at no share that the reports allow."
    )
    estimate: float | None = Field(default=None, description="Unbiased if all reports are honest.")
    lower: float | None = Field(default=None, description="Lower end of the interval.")
    upper: float | None = Field(default=None, description="Upper end.")
    items: Indices = Field(
        default=[],
        description="Indices: those of the question, sorted, of which the interval is the share "
        "of the honest users who hold one of them; or the `top` largest estimates, the largest "
        "first.",
    )
    more_than: float | None = Field(default=None, description="Of a question about `items`.")
    ahead: Indices = Field(
        default=[],
        description="Indices of two items; the interval is the frequency of the first minus that "
        "of the second, among the honest users.",
    )
    mean_above: float | None = Field(
        default=None,
        description="The interval is the mean of the honest users' numbers from -1 to 1.",
    )
    top: int | None = Field(default=None, description="The number k of the question.")
    certain: Indices = Field(
        default=[], description="Items that are proven to be among the first k."
    )
    possible: Indices = Field(default=[], description="Items that may be among the first k.")


class CertifiedMean(Message):
    """The interval of the mean of the honest users' numbers from -1 to 1."""

    lower: float
    upper: float


class CertifiedSentences(Message):
    """What a certificate says, as text; labels in it are untrusted."""

    answers: list[Text] = Field(description="One for each answer.")
    bound: Text = Field(description="What the assumed share of malicious reports leaves open.")
    proven: Text | None = Field(description="The proven share of malicious reports, if any.")


class Certified(RoundResult):
    """What a round proves, whatever malicious users sent.

    Everything holds together with the confidence, and only if the share of malicious reports is not
    larger than assumed; the tolerances and `least_malicious_share` hold at any share.
    """

    model_config = ConfigDict(json_schema_extra=optional("question", "window", "numbers", "mean"))

    n: int = Field(ge=1, lt=1 << 63, description="Number of reports counted.")
    malicious_share: float
    confidence: float
    events: Count = Field(description="Number of events whose probabilities are bounded.")
    from_reports: bool = Field(description="Whether the reports were read, not only their counts.")
    seed: Text | None = Field(
        description="128 random bits in hex, drawn when the round was closed, that split the "
        "reports; null from counts."
    )
    assumption: Text = Field(description="What the intervals assume, as text.")
    least_malicious_share: float = Field(
        description="Share of the reports that are proven not to come from honest users."
    )
    items: Items
    lower: Annotated[Column, Field(description="Lower ends of the frequencies' intervals.")]
    upper: Annotated[Column, Field(description="Upper ends.")]
    answers: list[Answer] = Field(description="In the order of the questions.")
    sentences: CertifiedSentences
    mean: CertifiedMean | None = Field(
        default=None, description='Only for rounds over the items "-1" and "1".'
    )

    @property
    def _vectors(self) -> Columns:
        d = len(self.items)
        return {
            "lower": plain_column(self.lower, self.items),
            "upper": plain_column(self.upper, self.items),
            "events": [self.events] * d,
            "from_reports": [self.from_reports] * d,
            "seed": [self.seed] * d,
        }


def certified(
    head: Mapping[str, Any], result: CertificateResult, labels: Sequence[str]
) -> Certified:
    """Return the response; `head` has the fields of `RoundResult`. Raises ImpossibleShareError."""
    from ldprecover.estimation.means import ITEMS

    lower, upper = result.intervals
    fields: dict[str, Any] = {"lower": lower.tolist(), "upper": upper.tolist()}
    if tuple(labels) == ITEMS:
        low, high = result.mean
        fields["mean"] = CertifiedMean(lower=low, upper=high)
    sentences = vars(result.sentences(labels))
    fields["sentences"] = CertifiedSentences.model_construct(**sentences)
    fields["answers"] = [Answer.model_construct(**each) for each in result.answers]
    return Certified.model_construct(**head, items=labels, **vars(result) | fields)


def certify_export(
    export: RoundExport, request: CertificateRequest, reports: ReportSource | None = None
) -> Certified:
    """Return the response that the server of an exported round gives to the request.

    A request from reports needs all `reports` of the round, unless the tally is their histogram.
    Raises ImpossibleShareError, and
    ParameterError also for a round without reports, and one that was open when it was exported.
    """
    from ldprecover.certificate.results import certificate_result
    from ldprecover.reports import ReportSource

    parameters = export.parameters
    if request.reports and reports is None and parameters.oracle.traits.histogram:
        reports = ReportSource.of_tally(parameters.oracle, export.tally)
    if request.reports and (reports is None or export.seed is None):
        raise ParameterError("a certificate from reports needs the reports of a closed round")
    result = certificate_result(
        parameters.oracle,
        export.tally,
        reports if request.reports else None,
        **request.core_arguments(parameters.items),
        seed=export.seed if request.reports else None,
    )
    return certified({"round": export.round}, result, parameters.items)

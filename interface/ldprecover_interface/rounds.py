"""Rounds: opening, listing and reading them, their tickets and their statistics."""

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, PydanticKnownError

from ldprecover.errors import ParameterError
from ldprecover.protocols import (
    MAX_DOMAIN_SIZE,
    MAX_EPSILON,
    MIN_EPSILON,
    PROTOCOLS,
    own_parameters,
)
from ldprecover.rounds.parameters import MAX_LABEL, TEXTS, RoundParameters
from ldprecover_interface.base import (
    MAX_TICKETS,
    ROUND_NAME,
    SERIES_NAME,
    Count,
    Message,
    Reference,
    Request,
    Text,
)
from ldprecover_interface.verdicts import Verdict

LANGUAGE = "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"
"""The form of a language's tag in BCP 47."""

Access = Annotated[
    Literal["open", "key", "ticket"],
    Field(
        description="Who may submit. `open`: anyone, one report a submission, and more with a "
        "report key. `key`: report keys. `ticket`: tickets, one report each."
    ),
]
ReadAccess = Annotated[
    Literal["public", "key"],
    Field(
        description="Who may read and recover frequencies: anyone, or analyst keys. They can "
        "see each perturbed report of an open round arrive."
    ),
]
Retention = Annotated[
    Literal["forever", "none"],
    Field(
        description="Whether packed reports are stored beside their counts: `forever`, until the "
        "round is deleted, or `none`."
    ),
]
_SERIES = "Its series: rounds that ask the same, of which one is open at most."
ClosesAt = Annotated[
    str | None,
    Field(
        description="When the server closes it, within a minute; of a request with an offset.",
        examples=["2030-01-31T18:00:00+01:00"],
    ),
]
Items = Annotated[list[str], Field(fail_fast=True, description="Labels; item i is the i-th.")]

Practice = Annotated[
    bool,
    Field(
        description="Whether plain http may carry its reports. Only the server of `ldprecover "
        "class` opens such a round."
    ),
]


class ShownTexts(Message):
    """Adds the plain texts that a round shows, and their language. The digest has none of them."""

    question: Text | None = Field(
        default=None, max_length=TEXTS["question"], description="What the survey asks."
    )
    title: Text | None = Field(
        default=None, max_length=TEXTS["title"], description="Of the survey."
    )
    thanks: Text | None = Field(
        default=None, max_length=TEXTS["thanks"], description="Said after a report."
    )
    language: Annotated[str, Field(pattern=LANGUAGE)] | None = Field(
        default=None,
        max_length=TEXTS["language"],
        description="Of the texts and items, a BCP 47 tag. The survey speaks it, or that of the "
        "browser.",
        examples=["de"],
    )


class OwnParametersMixin(Message):
    """Adds the parameters that belong to single protocols, as `hash_range` belongs to OLH.

    They are looked up when a message is read, so a plugin may register its protocol after import.
    """

    model_config = ConfigDict(extra="allow")

    own_required: ClassVar[bool] = True
    """Whether a response always has the parameters that the class does not declare."""

    @property
    def own(self) -> dict[str, int | None]:
        """Every protocol's own parameters by name; None for one that the round does not have."""
        extra = self.model_extra or {}
        return {name: extra.get(name) for name in own_parameters()}

    @model_validator(mode="after")
    def _check_own(self) -> Self:
        errors = [
            InitErrorDetails(type=fault, loc=(name,), input=value)
            for name, value in (self.model_extra or {}).items()
            if (fault := self._fault(name, value))
        ]
        if errors:
            raise ValidationError.from_exception_data(type(self).__name__, errors)
        return self

    @classmethod
    def _fault(cls, name: str, value: object) -> PydanticCustomError | None:
        """Return what is wrong with a field that the class does not declare, if anything is."""
        is_request = issubclass(cls, Request)
        if name not in own_parameters():
            return _UNKNOWN if is_request else None
        low, high = _range(name) if is_request else (0, (1 << 63) - 1)
        allowed = value is None or (type(value) is int and low <= value <= high)
        return None if allowed else _NOT_ALLOWED

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        target = handler.resolve_ref_schema(schema)
        is_request = issubclass(cls, Request)
        for name, parameters in own_parameters().items():
            low, high = _range(name)
            limits = {"minimum": low, "maximum": high} if is_request else {}
            target["properties"].setdefault(
                name,
                {
                    "anyOf": [{"type": "integer", **limits}, {"type": "null"}],
                    "description": " ".join(dict.fromkeys(each.meaning for each in parameters)),
                },
            )
            if cls.own_required and not is_request:
                target["required"].append(name)
        target["additionalProperties"] = not is_request
        return schema


_UNKNOWN = PydanticCustomError("extra_forbidden", "the field is not known")
_NOT_ALLOWED = PydanticCustomError("own_parameter", "the value is not allowed")


def _range(name: str) -> tuple[int, int]:
    """Return the least and greatest value that any protocol allows for its own parameter."""
    parameters = own_parameters()[name]
    return min(each.low for each in parameters), max(each.high for each in parameters)


class InSeries(Request):
    """Adds the series that is continued, and the time to close."""

    series: Annotated[str, Field(pattern=SERIES_NAME)] | None = Field(
        default=None,
        description=_SERIES,
        examples=["usage"],
    )
    closes_at: ClosesAt = None


class RoundSettings(ShownTexts, OwnParametersMixin, Request):
    """What a round is opened with. Give either `items` or `domain_size`."""

    model_config = ConfigDict(
        extra="allow",  # the parameters of single protocols, which `_check_own` validates
        json_schema_extra={
            "examples": [
                {
                    "name": "cities",
                    "question": "Which of these cities did you visit last?",
                    "protocol": "olh",
                    "epsilon": 0.5,
                    "items": ["New York, NY", "Chicago, IL"],
                }
            ]
        },
    )

    protocol: str = Field(description="Frequency oracle.")
    epsilon: float = Field(
        ge=MIN_EPSILON, le=MAX_EPSILON, description="Privacy budget of one report."
    )
    name: Annotated[str, Field(pattern=ROUND_NAME)] | None = Field(
        default=None,
        description="Unique; by default series and number, or else derived from the protocol.",
        examples=["cities"],
    )
    items: (
        Annotated[list[Text], Field(fail_fast=True, min_length=2, max_length=MAX_DOMAIN_SIZE)]
        | None
    ) = Field(
        default=None,
        description=f"Labels of at most {MAX_LABEL} characters, no two of which look the same; "
        "item i is the i-th.",
    )
    domain_size: Annotated[int, Field(ge=2, le=MAX_DOMAIN_SIZE)] | None = Field(
        default=None, description="Number of items d, which are labelled `0` to `d-1`."
    )
    practice: Practice = False
    access: Access = "open"
    read_access: ReadAccess = "public"
    retention: Retention = "forever"

    @field_validator("protocol")
    @classmethod
    def _check_protocol(cls, protocol: str) -> str:
        if protocol not in PROTOCOLS:
            raise PydanticKnownError("literal_error", {"expected": ", ".join(PROTOCOLS)})
        return protocol

    @property
    def parameters(self) -> RoundParameters:
        """The parameters of the round. Raises ParameterError."""
        if (self.items is None) == (self.domain_size is None):
            raise ParameterError("give either items or domain_size")
        items = map(str, range(self.domain_size or 0)) if self.items is None else self.items
        return RoundParameters.named(
            self.protocol, self.epsilon, items, self.own, practice=self.practice
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core_schema, handler)
        # Looked up here: a plugin may register its protocol after import.
        handler.resolve_ref_schema(schema)["properties"]["protocol"]["enum"] = list(PROTOCOLS)
        return schema


class NewRound(InSeries, RoundSettings):
    """A round to open. Give either `items` or `domain_size`."""


class NewTickets(Request):
    """How many tickets to mint."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"count": 100}]})

    count: int = Field(ge=1, le=MAX_TICKETS, description="Each ticket admits one report.")


class _RoundHead(ShownTexts, OwnParametersMixin):
    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.name}, {self.protocol}, epsilon {self.epsilon:g}, "
            f"{self.domain_size:,} items{', practice' if self.practice else ''})"
        )

    id: Reference
    name: Text
    protocol: Text
    epsilon: float
    domain_size: int = Field(ge=2, description="Number of items d.")
    digits: int | None = Field(
        description="LLH: k, the number of digits of an item's code in base `hash_range`."
    )
    p: float | None = Field(
        description="Null if the protocol is a plugin that the server has not loaded."
    )
    q: float | None = Field(description="Null as p is.")
    practice: Practice = False
    form: Reference | None = Field(
        default=None, description="Id of the form that the round belongs to."
    )
    series: Text | None = Field(default=None, description=_SERIES)
    number: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="In its series; that of its form in a form."
    )
    closes_at: ClosesAt = None
    digest: Text = Field(
        description="SHA-256 of protocol, epsilon, hash range, items and, if true, practice."
    )
    # Texts here, so that a client can name a kind of access that it does not know.
    access: Annotated[str, Field(json_schema_extra={"enum": ["open", "key", "ticket"]})]
    read_access: Annotated[str, Field(json_schema_extra={"enum": ["public", "key"]})]
    retention: Annotated[str, Field(json_schema_extra={"enum": ["forever", "none"]})]


class Round(_RoundHead):
    """A round with its items."""

    p: float
    q: float
    items: Items

    @cached_property
    def parameters(self) -> RoundParameters:
        """The parameters by which a user perturbs.

        Raises ParameterError, and KeyError for a protocol that is not loaded.
        """
        return RoundParameters.named(
            self.protocol, self.epsilon, self.items, self.own, practice=self.practice
        )


class Parameters(Round):
    """The immutable part of a round, and the digest by which clients compare it."""

    thresholds: dict[str, str] = Field(
        description="The integers that a client compares uniform 64-bit words with to make a "
        "report, in decimal digits. They follow from the other fields and are not in the digest.",
        examples=[{"keep_below": "8768971294881393556"}],
    )


class RoundSummary(_RoundHead):
    """A round without its items, with its state and the number of reports counted."""

    state: Literal["open", "closed"]
    n: Count = Field(description="Number of reports counted.")
    verdict: Verdict | None = Field(
        description="Null until the server has computed it, for an open round from 1,000 reports "
        "on; if the round is too large for that; and for callers that may not read the round."
    )
    opened_at: Text
    closed_at: Text | None

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.state}, {self.n:,} reports)"


class RoundStatus(Round, RoundSummary):
    """A round with its items, its state and the number of reports counted."""


class RoundList(Message):
    """Rounds; the first was opened last."""

    rounds: list[RoundSummary]


class Stats(Message):
    """The number of a round's reports."""

    round: Text
    reports: Count = Field(description="Number of reports counted, n.")

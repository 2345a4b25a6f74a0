"""The JSON of requests and answers, as the API reference shows it."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ldprecover.protocols import MAX_DOMAIN_SIZE, MAX_EPSILON, MAX_HASH_RANGE, MIN_EPSILON
from ldprecover_server.access.tickets import MAX_COUNT
from ldprecover_server.retention import PATTERN

__all__ = [
    "Accepted",
    "Alarms",
    "Export",
    "Frequencies",
    "Methods",
    "NewRound",
    "NewTickets",
    "Parameters",
    "ProblemDetails",
    "RecoverRequest",
    "Recovered",
    "Round",
    "Rounds",
    "Stats",
    "Suspected",
    "Version",
]

ROUND_NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"

Access = Literal["open", "key", "ticket"]
ReadAccess = Literal["public", "key"]
ACCESS = (
    "Who may submit: anyone, one report a submission, and more with a report key; or report keys alone; or tickets "
    "alone, one report each."
)
READ_ACCESS = "Who may read frequencies and recover: anyone, or analyst keys."
RETENTION = 'How long packed reports are kept once counted: "forever", "none", or hours or days as "36h" or "7d".'

SERIES = "The series of rounds over the same items, in the same order, that this one is compared with; or none."


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class NewRound(_Request):
    """A round to open. Give `items` or `domain_size`, not both."""

    name: Annotated[
        str | None,
        Field(pattern=ROUND_NAME, description="Unique; made from the protocol when absent.", examples=["cities"]),
    ] = None
    protocol: Annotated[Literal["grr", "oue", "olh"], Field(description="Frequency oracle.")]
    epsilon: Annotated[float, Field(ge=MIN_EPSILON, le=MAX_EPSILON, description="Privacy budget of one report.")]
    items: Annotated[
        list[Annotated[str, Field(min_length=1)]] | None,
        Field(min_length=2, max_length=MAX_DOMAIN_SIZE, description="Distinct labels; item i is the i-th."),
    ] = None
    domain_size: Annotated[
        int | None, Field(ge=2, le=MAX_DOMAIN_SIZE, description='d, for items labelled "0" to "d-1".')
    ] = None
    hash_range: Annotated[
        int | None, Field(ge=2, le=MAX_HASH_RANGE, description="g, OLH only; default ceil(e^epsilon + 1).")
    ] = None
    access: Annotated[Access, Field(description=ACCESS)] = "open"
    read_access: Annotated[ReadAccess, Field(description=READ_ACCESS)] = "public"
    retention: Annotated[str, Field(pattern=PATTERN, description=RETENTION, examples=["30d"])] = "forever"
    series: Annotated[str | None, Field(pattern=ROUND_NAME, description=SERIES, examples=["weekly"])] = None


class NewTickets(_Request):
    """How many tickets to mint."""

    count: Annotated[int, Field(ge=1, le=MAX_COUNT, description="Each admits one report.")]


class _Brief(BaseModel):
    id: str
    name: str
    protocol: str
    epsilon: float
    domain_size: Annotated[int, Field(description="Number of items, d.")]
    hash_range: int | None
    p: float
    q: float
    digest: Annotated[str, Field(description="SHA-256 over protocol, epsilon, hash range and items.")]
    access: Annotated[Access, Field(description=ACCESS)]
    read_access: Annotated[ReadAccess, Field(description=READ_ACCESS)]
    retention: Annotated[str, Field(description=RETENTION)]
    series: Annotated[str | None, Field(description=SERIES)]


class _State(BaseModel):
    state: Literal["open", "closed"]
    n: Annotated[int, Field(description="Reports counted.")]
    opened_at: datetime
    closed_at: datetime | None


class Parameters(_Brief):
    """What never changes in a round, and the digest by which clients can compare it."""

    items: Annotated[list[str], Field(description="Labels; item i is the i-th.")]


class RoundSummary(_Brief, _State):
    """A round, its state and the number of reports counted, without its items."""


class Round(Parameters, _State):
    """A round, its items, its state and the number of reports counted."""


class Rounds(BaseModel):
    """Rounds, the one opened last first."""

    rounds: list[RoundSummary]


class Accepted(BaseModel):
    """A submission is stored and counted, durably."""

    round: str
    accepted: Annotated[int, Field(description="Reports of this submission.")]
    duplicate: Annotated[bool, Field(description="It had been stored before, under the same key.")]


class MeanOfNumbers(BaseModel):
    """The unbiased mean of users' numbers from -1 to 1, and its normal interval at 95 %."""

    value: float
    standard_error: float
    low: float
    high: float


class Frequencies(BaseModel):
    """Unbiased estimates, never clipped; columns follow the items."""

    round: str
    protocol: str
    epsilon: float
    n: int
    p: float
    q: float
    items: list[str]
    counts: Annotated[list[int], Field(description="Support counts C(v).")]
    frequencies: list[float] | None
    standard_errors: list[float] | None
    sum: Annotated[float | None, Field(description="Sum of the frequencies; 1 expected of honest reports.")]
    mean: Annotated[
        MeanOfNumbers | None, Field(description='Of a round for numbers, GRR over the items "-1" and "1"; else absent.')
    ] = None


class Stats(BaseModel):
    """What came of a round's submissions; refusals are written every few seconds, and a crash loses the last."""

    round: str
    reports: Annotated[int, Field(description="Reports counted: n.")]
    duplicates: Annotated[int, Field(description="Submissions that had been stored before.")]
    refusals: Annotated[dict[str, int], Field(description="Submissions refused, by type of problem.")]


class Export(BaseModel):
    """A round on its own: enough to estimate and to recover without the server."""

    format: Literal["ldprecover-export-1"]
    round: str
    name: str
    protocol: str
    epsilon: float
    items: list[str]
    hash_range: int | None
    n: int
    counts: list[int]
    digest: Annotated[str, Field(description="Of the parameters, as in GET /rounds/{id}/parameters.")]
    checksum: Annotated[
        str,
        Field(
            description="SHA-256 in hex over digest, n (u8), counts (i8), then round and name, each as a length (u4) "
            "and UTF-8; little-endian."
        ),
    ]


class RecoverRequest(_Request):
    """How to recover; every field is optional."""

    eta: Annotated[
        Annotated[float, Field(ge=0, le=10)] | Literal["auto"],
        Field(description="Assumed malicious users per genuine one, m/n; auto estimates it where the counts allow."),
    ] = 0.2
    targets: Annotated[
        list[str | int] | Literal["infer"],
        Field(
            description="Known target items, labels or indices; with any, the method is LDPRecover*. infer takes the "
            "suspects of GET /rounds/{id}/suspects."
        ),
    ] = []
    method: Annotated[str, Field(description="Recovery method: see GET /rounds/{id}/methods.")] = "ldprecover"
    malicious_model: Annotated[
        Literal["paper", "exact", "padded", "searched", "custom"],
        Field(
            description="LDPRecover*'s printed equations, or the corrected algebra; reports padded to an honest "
            "size (OUE) or of searched seeds (OLH); or the shares in `support`."
        ),
    ] = "paper"
    support: Annotated[
        list[Annotated[float, Field(ge=0, le=1)]] | None,
        Field(description="For custom: the share of malicious reports that support each item."),
    ] = None
    # A union, so that whole numbers stay whole.
    options: Annotated[dict[str, int | float], Field(description="The method's own options, numbers by name.")] = {}


class MethodOption(BaseModel):
    """A number that one method takes."""

    name: str
    default: Annotated[int | float, Field(description="An integer where the option is one.")]
    low: int | float
    high: int | float
    meaning: str


class MethodSummary(BaseModel):
    """A recovery method, and whether a round can give it."""

    name: str
    summary: str
    needs: Annotated[list[str], Field(description="Of counts, n, reports, targets: what it cannot do without.")]
    uses: Annotated[list[str], Field(description="Fields of the request that change its result.")]
    gives: Annotated[
        Literal["distribution", "sum-one", "frequencies"],
        Field(description="What `recovered` is: a distribution, of sum one but perhaps negative, or neither."),
    ]
    cost: str
    options: list[MethodOption]
    available: Annotated[bool, Field(description="Whether this round can give it, with targets where it needs them.")]
    reason: Annotated[str | None, Field(description="Why not.")]


class Methods(BaseModel):
    """Every recovery method."""

    round: str
    methods: list[MethodSummary]


class AlarmRaised(BaseModel):
    """A test of the round's reports; raised when the statistic is above the threshold."""

    name: str
    raised: bool
    statistic: float
    threshold: float
    rate: Annotated[float, Field(description="Probability that honest reports raise it.")]
    meaning: str


class Alarms(BaseModel):
    """What the tests for a round's protocol say."""

    round: str
    n: int
    reports_read: Annotated[bool, Field(description="Whether every report is kept, so that all tests ran.")]
    alarms: list[AlarmRaised]


class Suspect(BaseModel):
    """An item whose frequency rose by more than its noise."""

    item: Annotated[int, Field(description="Index.")]
    label: str
    before: Annotated[float, Field(description="Frequency in the earlier rounds, pooled.")]
    now: float
    z: Annotated[float, Field(description="The rise in standard errors of the difference.")]
    p_value: float


class Suspected(BaseModel):
    """The suspects of a round, the largest rise in z first."""

    round: str
    earlier: Annotated[list[str], Field(description="The rounds compared with, the last one first.")]
    rate: float
    suspects: list[Suspect]


class Recovered(BaseModel):
    """A recovery from the poisoned counts; columns follow the items."""

    round: str
    method: str
    eta: float
    targets: Annotated[list[int], Field(description="Sorted indices of the targets.")]
    malicious_model: str
    n: int
    malicious_sum: Annotated[float, Field(description="(1-qd)/(p-q).")]
    items: list[str]
    poisoned: list[float]
    malicious: Annotated[list[float], Field(description="The malicious frequencies that were assumed.")]
    genuine: Annotated[list[float], Field(description="The estimate before refining.")]
    recovered: Annotated[list[float], Field(description="The result: see the method's `gives`.")]
    notes: Annotated[list[str], Field(description="What the method says about this result.")]


class Version(BaseModel):
    """What is running."""

    version: str
    kernels: Annotated[str, Field(description="Support counting: numpy or numba.")]


class ProblemDetails(BaseModel):
    """RFC 9457 problem."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str | None = None

"""The JSON of requests and answers: one declaration of each builds it, checks it and
describes it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ldprecover.items import MAX_CANARIES
from ldprecover.protocols import (
    MAX_DOMAIN_SIZE,
    MAX_EPSILON,
    MIN_EPSILON,
    PROTOCOLS,
    own_parameters,
)
from ldprecover_interface.base import MAX_HISTORY
from ldprecover_server.access.tickets import MAX_COUNT
from ldprecover_server.retention import PATTERN
from ldprecover_server.rounds import NAME

__all__ = [
    "Accepted",
    "AlarmRaised",
    "Alarms",
    "ConclusionsDrawn",
    "DroppedReports",
    "Export",
    "Frequencies",
    "JobStatus",
    "MeanOfNumbers",
    "MethodOption",
    "MethodSummary",
    "Methods",
    "NewRound",
    "NewTickets",
    "Parameters",
    "PlannedCurves",
    "PlannedGain",
    "PlannedProtocol",
    "Plans",
    "ProblemDetails",
    "RecoverRequest",
    "Recovered",
    "Round",
    "RoundSummary",
    "Rounds",
    "SetAside",
    "Stats",
    "Status",
    "Suspect",
    "Suspected",
    "SuspectedItem",
    "Version",
    "Wished",
    "WorstGain",
]

ROUND_NAME = f"^{NAME}$"

if TYPE_CHECKING:
    Protocol = str
else:
    Protocol = Annotated[Literal[tuple(PROTOCOLS)], Meta(description="Frequency oracle.")]
Access = Annotated[
    Literal["open", "key", "ticket"],
    Meta(
        description="Who may submit: anyone, one report a submission, and more with a report key; "
        "or report keys "
        "alone; or tickets alone, one report each."
    ),
]
ReadAccess = Annotated[
    Literal["public", "key"],
    Meta(description="Who may read frequencies and recover: anyone, or analyst keys."),
]
_RETENTION = (
    'How long packed reports are kept once counted: "forever", "none", or hours or days '
    'as "36h" or "7d".'
)
_CANARIES = "Indices of the items that nobody holds, in ascending order."
_QUARANTINE = (
    "Whether reports that no honest user sends are set aside: accepted and stored, but "
    "counted nowhere else."
)
_SERIES = (
    "The series of rounds over the same items, in the same order, that this one is compared "
    "with; or none."
)


class _Request(Struct, forbid_unknown_fields=True):
    """Base of what callers send: a field that is not known is refused, and numbers are strict."""


def _with_own_parameters(
    base: type[Struct], kind: Callable[[str], Any], *default: object
) -> type[Struct]:
    """Return the struct with a field more for each parameter that is some protocols' own, and that
    it has not.
    """
    missing = [name for name in own_parameters() if name not in base.__struct_fields__]
    fields: Any = [(name, kind(name), *default) for name in missing]
    return msgspec.defstruct(base.__name__, fields, bases=(base,), kw_only=True)


def _given(name: str) -> Any:
    """Return the type of a protocol's own parameter in a request."""
    own = own_parameters()[name]
    low, high = min(each.low for each in own), max(each.high for each in own)
    meaning = "; ".join(dict.fromkeys(each.meaning for each in own))
    return Annotated[Annotated[int, Meta(ge=low, le=high)] | None, Meta(description=meaning)]


class _Items(_Request):
    protocol: Protocol
    epsilon: Annotated[
        float, Meta(ge=MIN_EPSILON, le=MAX_EPSILON, description="Privacy budget of one report.")
    ]
    name: Annotated[
        Annotated[str, Meta(pattern=ROUND_NAME)] | None,
        Meta(description="Unique; made from the protocol when absent.", examples=["cities"]),
    ] = None
    items: Annotated[
        Annotated[
            list[Annotated[str, Meta(min_length=1)]], Meta(min_length=2, max_length=MAX_DOMAIN_SIZE)
        ]
        | None,
        Meta(description="Distinct labels; item i is the i-th."),
    ] = None
    domain_size: Annotated[
        Annotated[int, Meta(ge=2, le=MAX_DOMAIN_SIZE)] | None,
        Meta(description='d, for items labelled "0" to "d-1".'),
    ] = None


if TYPE_CHECKING:
    _ItemsAndOwn = _Items
else:
    _ItemsAndOwn = _with_own_parameters(_Items, _given, None)


class NewRound(_ItemsAndOwn, kw_only=True):
    """A round to open. Give `items` or `domain_size`, not both."""

    access: Access = "open"
    read_access: ReadAccess = "public"
    retention: Annotated[str, Meta(pattern=PATTERN, description=_RETENTION, examples=["30d"])] = (
        "forever"
    )
    canaries: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_CANARIES)]
        | Annotated[
            list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1, max_length=MAX_CANARIES)
        ]
        | None,
        Meta(
            description="Items that nobody holds, which are added after the others: their labels, "
            "or how many, to be "
            'labelled "canary 1", "canary 2" and so on.'
        ),
    ] = None
    quarantine: Annotated[bool, Meta(description=_QUARANTINE)] = False
    series: Annotated[
        Annotated[str, Meta(pattern=ROUND_NAME)] | None,
        Meta(description=_SERIES, examples=["weekly"]),
    ] = None


class NewTickets(_Request):
    """How many tickets to mint."""

    count: Annotated[int, Meta(ge=1, le=MAX_COUNT, description="Each admits one report.")]


class RecoverRequest(_Request):
    """How to recover; every field is optional."""

    eta: Annotated[
        Annotated[float, Meta(ge=0, le=10)] | Literal["auto"],
        Meta(
            description="Assumed malicious users per genuine one, m/n; auto estimates it where "
            "the counts allow."
        ),
    ] = 0.2
    targets: Annotated[
        list[str | int] | Literal["infer"],
        Meta(
            description="Known target items, labels or indices; with any, the method is "
            "LDPRecover*. infer takes the "
            "suspects of GET /rounds/{id}/suspects."
        ),
    ] = []
    method: Annotated[str, Meta(description="Recovery method: see GET /rounds/{id}/methods.")] = (
        "ldprecover"
    )
    malicious_model: Annotated[
        Literal["paper", "exact", "padded", "searched", "solved", "custom"],
        Meta(
            description="LDPRecover*'s printed equations, or the corrected algebra; reports "
            "padded to an honest "
            "size (OUE, SUE, SS), of searched seeds (OLH) or of solved columns (HR); or the "
            "shares in `support`."
        ),
    ] = "paper"
    support: Annotated[
        list[Annotated[float, Meta(ge=0, le=1)]] | None,
        Meta(description="For custom: the share of malicious reports that support each item."),
    ] = None
    options: Annotated[
        # A union, so that whole numbers stay whole.
        dict[str, int | float],
        Meta(description="The method's own options, numbers by name."),
    ] = {}
    history: Annotated[
        list[str],
        Meta(
            max_length=MAX_HISTORY,
            description="Closed rounds over the same items that are known to be clean, ids or "
            "names. None is taken "
            "that is not named.",
        ),
    ] = []


class _Head(Struct, kw_only=True):
    id: str
    name: str
    protocol: str
    epsilon: float
    domain_size: Annotated[int, Meta(description="Number of items, d.")]


if TYPE_CHECKING:
    _HeadAndOwn = _Head
else:
    _HeadAndOwn = _with_own_parameters(_Head, lambda name: int | None)


class _Brief(_HeadAndOwn, kw_only=True):
    p: Annotated[
        float | None,
        Meta(description="Null where the round's protocol is a plugin that is not loaded."),
    ]
    q: Annotated[float | None, Meta(description="Null as p is.")]
    canaries: Annotated[tuple[int, ...], Meta(description=_CANARIES)]
    quarantine: Annotated[bool, Meta(description=_QUARANTINE)]
    digest: Annotated[
        str,
        Meta(
            description="SHA-256 over protocol, epsilon, hash range, items, canaries and "
            "quarantine."
        ),
    ]
    access: Access
    read_access: ReadAccess
    retention: Annotated[str, Meta(description=_RETENTION)]
    series: Annotated[str | None, Meta(description=_SERIES)]


class Parameters(_Brief, kw_only=True):
    """What never changes in a round, and the digest by which clients can compare it."""

    p: float
    q: float
    thresholds: Annotated[
        dict[str, str],
        Meta(
            description="What a report of the protocol compares uniform 64-bit words with, in "
            "decimal digits. It "
            "follows from the rest, and is not in the digest.",
            examples=[{"keep_below": "8768971294881393556"}],
        ),
    ]
    items: Annotated[tuple[str, ...], Meta(description="Labels; item i is the i-th.")]


class SetAside(Struct):
    """How many reports are in a round's quarantine: in neither n nor any count."""

    sizes: Annotated[
        int, Meta(description="For supporting a number of items that no honest report does.")
    ]
    seeds: Annotated[
        int | None,
        Meta(
            description="For a hash seed that comes too often; null until that is known, soon "
            "after the closing."
        ),
    ]


_SetAside = Annotated[
    SetAside | None, Meta(description="Reports set aside; null where the round sets none aside.")
]


class RoundSummary(_Brief, kw_only=True):
    """A round, its state and the number of reports counted, without its items."""

    state: Literal["open", "closed"]
    n: Annotated[int, Meta(description="Reports counted.")]
    quarantined: _SetAside
    opened_at: str
    closed_at: str | None


class Round(RoundSummary, kw_only=True):
    """A round, its items, its state and the number of reports counted."""

    p: float
    q: float

    items: Annotated[tuple[str, ...], Meta(description="Labels; item i is the i-th.")]


class Rounds(Struct):
    """Rounds, the one opened last first."""

    rounds: list[RoundSummary]


class Accepted(Struct):
    """A submission is stored and counted, durably."""

    round: str
    accepted: Annotated[int, Meta(description="Reports of this submission.")]
    duplicate: Annotated[bool, Meta(description="It had been stored before, under the same key.")]


class MeanOfNumbers(Struct):
    """The unbiased mean of users' numbers from -1 to 1, and its normal interval at 95 %."""

    value: float
    standard_error: float
    low: float
    high: float


class Frequencies(Struct, kw_only=True):
    """Unbiased estimates, never clipped; columns follow the items."""

    round: str
    protocol: str
    epsilon: float
    n: int
    p: float
    q: float
    items: tuple[str, ...]
    counts: Annotated[list[int], Meta(description="Support counts C(v).")]
    frequencies: list[float] | None
    standard_errors: list[float] | None
    sum: Annotated[
        float | None, Meta(description="Sum of the frequencies; 1 expected of honest reports.")
    ]
    sum_standard_error: Annotated[
        float | None,
        Meta(
            description="Of the sum, when all reports are honest; null where the protocol has no "
            "law of it."
        ),
    ]
    canaries: Annotated[tuple[int, ...], Meta(description=_CANARIES)]
    quarantined: _SetAside
    mean: Annotated[
        MeanOfNumbers | UnsetType | None,
        Meta(description='Of a round for numbers, GRR over the items "-1" and "1"; else absent.'),
    ] = UNSET


class Stats(Struct):
    """What came of a round's submissions; refusals are written every few seconds, and a crash loses
    the last.
    """

    round: str
    reports: Annotated[int, Meta(description="Reports counted: n.")]
    quarantined: _SetAside
    duplicates: Annotated[int, Meta(description="Submissions that had been stored before.")]
    refusals: Annotated[
        dict[str, int], Meta(description="Submissions refused, by type of problem.")
    ]


class _Export(Struct, kw_only=True):
    format: Literal["ldprecover-export-1"]
    round: str
    name: str
    protocol: str
    epsilon: float
    items: tuple[str, ...]
    hash_range: int | None


if TYPE_CHECKING:
    _ExportAndOwn = _Export
else:
    _ExportAndOwn = _with_own_parameters(_Export, lambda name: int | UnsetType, UNSET)


class Export(_ExportAndOwn, kw_only=True):
    """A round on its own: enough to estimate and to recover without the server."""

    canaries: Annotated[list[int] | UnsetType, Meta(description=_CANARIES)] = UNSET
    quarantined: Annotated[
        SetAside | UnsetType, Meta(description="Of a round that sets reports aside.")
    ] = UNSET
    n: int
    counts: list[int]
    digest: Annotated[
        str, Meta(description="Of the parameters, as in GET /rounds/{id}/parameters.")
    ]
    checksum: Annotated[
        str,
        Meta(
            description="SHA-256 in hex over digest, n (u8), counts (i8), then round and name, "
            "each as a length (u4) "
            "and UTF-8; little-endian."
        ),
    ]


class MethodOption(Struct):
    """A number that one method takes."""

    name: str
    default: Annotated[int | float, Meta(description="An integer where the option is one.")]
    low: int | float
    high: int | float
    meaning: str


class MethodSummary(Struct):
    """A recovery method, and whether a round can give it."""

    name: str
    summary: str
    needs: Annotated[
        list[str], Meta(description="Of counts, history, n, reports, targets: what it must have.")
    ]
    better_with: Annotated[
        list[str],
        Meta(description="Of the same: what it can do without and uses where it is there."),
    ]
    uses: Annotated[list[str], Meta(description="Fields of the request that change its result.")]
    gives: Annotated[
        Literal["distribution", "sum-one", "frequencies"],
        Meta(
            description="What `recovered` is: a distribution, of sum one but perhaps negative, or "
            "neither."
        ),
    ]
    cost: str
    options: list[MethodOption]
    available: Annotated[
        bool, Meta(description="Whether this round can give it, with targets where it needs them.")
    ]
    reason: Annotated[str | None, Meta(description="Why not.")]


class Methods(Struct):
    """Every recovery method."""

    round: str
    methods: list[MethodSummary]


class AlarmRaised(Struct):
    """A test of the round's reports; raised when the statistic is above the threshold."""

    name: str
    raised: bool
    statistic: float
    threshold: float
    rate: Annotated[
        float, Meta(description="At least the probability that honest reports raise it.")
    ]
    meaning: str


class Alarms(Struct):
    """What the tests for a round's protocol say."""

    round: str
    n: int
    reports_read: Annotated[
        bool, Meta(description="Whether every report is kept, so that all tests ran.")
    ]
    alarms: list[AlarmRaised]


class Suspect(Struct):
    """An item whose frequency rose by more than its noise."""

    item: Annotated[int, Meta(description="Index.")]
    label: str
    before: Annotated[float, Meta(description="Frequency in the earlier rounds, pooled.")]
    now: float
    z: Annotated[float, Meta(description="The rise in standard errors of the difference.")]
    p_value: float


class Suspected(Struct):
    """The suspects of a round, the largest rise in z first."""

    round: str
    earlier: Annotated[list[str], Meta(description="The rounds compared with, the last one first.")]
    rate: float
    suspects: list[Suspect]


class SuspectedItem(Struct):
    """An item that reports were made to raise."""

    item: Annotated[int, Meta(description="Index.")]
    label: str
    probability: float


class DroppedReports(Struct):
    """Reports that a screen left out."""

    screen: str
    what: str
    reports: int


class ConclusionsDrawn(Struct, kw_only=True):
    """How sure a method is of its result, and what it says of the attack; null where it says
    nothing.
    """

    standard_deviations: list[float] | None
    lower: Annotated[
        list[float] | None, Meta(description="Of intervals that hold 95 % of the frequencies.")
    ]
    upper: list[float] | None
    attack_probability: float | None
    beta: Annotated[float | None, Meta(description="Share of malicious reports among all.")]
    beta_low: Annotated[float | None, Meta(description="Of beta's interval at 95 %.")]
    beta_high: float | None
    suspects: Annotated[list[SuspectedItem], Meta(description="The most probable first.")]
    dropped: list[DroppedReports]
    history_weight: Annotated[
        float | None, Meta(description="Probability that the history is a guide to this round.")
    ]


class Recovered(Struct, kw_only=True):
    """A recovery from the poisoned counts; columns follow the items."""

    round: str
    method: str
    eta: float
    targets: Annotated[list[int], Meta(description="Sorted indices of the targets.")]
    malicious_model: str
    n: int
    malicious_sum: Annotated[float, Meta(description="(1-qd)/(p-q).")]
    items: tuple[str, ...]
    poisoned: list[float]
    malicious: Annotated[
        list[float], Meta(description="The malicious frequencies that were assumed.")
    ]
    genuine: Annotated[list[float], Meta(description="The estimate before refining.")]
    recovered: Annotated[list[float], Meta(description="The result: see the method's `gives`.")]
    notes: Annotated[list[str], Meta(description="What the method says about this result.")]
    conclusions: Annotated[ConclusionsDrawn | None, Meta(description="Of methods that draw any.")]


class JobStatus(Struct):
    """An analysis that was asked for with `Prefer: respond-async`."""

    job: str
    round: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: Annotated[float, Meta(ge=0, le=1, description="Grows from 0 to 1.")]
    result: Annotated[Recovered | None, Meta(description="Of one that is done.")]
    problem: Annotated["ProblemDetails | None", Meta(description="Of one that failed.")]


class Wished(Struct):
    """What was asked of a plan; null where nothing was."""

    domain_size: int | None
    users: int | None
    epsilon: float | None
    error: float | None
    sum_of: int
    frequency: float | None
    targets: int | None
    beta: float | None
    gain: float | None


class PlannedGain(Struct):
    """What an attack adds at most to the estimates of the targets together, which nobody holds."""

    attack: str
    sends: str
    gain: float | None
    reason: Annotated[str | None, Meta(description="Why no gain is stated.")]


class WorstGain(Struct):
    """How far malicious reports of any kind can move these estimates together."""

    rise: float
    fall: float
    projected_rise: Annotated[
        float, Meta(description="The same of any result that is a distribution.")
    ]
    projected_fall: float


class PlannedProtocol(Struct, kw_only=True):
    """What a protocol makes of a plan; null where it cannot have it."""

    protocol: str
    own: Annotated[dict[str, int], Meta(description="The protocol's own parameters by name.")]
    reason: Annotated[str | None, Meta(description="Why it cannot have it.")]
    domain_size: int | None
    users: int | None
    epsilon: float | None
    standard_error: Annotated[float | None, Meta(description="Of what was asked for.")]
    margin: Annotated[float | None, Meta(description="Half of its interval at 95 %.")]
    margin_of_all: Annotated[
        float | None, Meta(description="Half of intervals that hold for all items at 95 %.")
    ]
    report_size: Annotated[int | None, Meta(description="Bytes.")]
    hash_tests: Annotated[float | None, Meta(description="Items hashed to count all reports.")]
    targets: int | None
    beta: Annotated[float | None, Meta(description="Share of malicious users among all.")]
    gains: list[PlannedGain]
    worst: WorstGain | None


class PlannedCurves(Struct):
    """Standard errors of what was asked for by protocol, over epsilon and over users; null where
    there is none.
    """

    epsilon: list[float]
    users: list[int]
    over_epsilon: dict[str, list[float | None]]
    over_users: dict[str, list[float | None]]


class Plans(Struct):
    """What each protocol makes of a plan, the one to take first, those that cannot have it last."""

    solved: Annotated[
        Literal["domain_size", "users", "epsilon", "error"],
        Meta(description="What is worked out from the others."),
    ]
    wish: Wished
    protocols: list[PlannedProtocol]
    curves: Annotated[
        PlannedCurves | None, Meta(description="Where they were asked for and one can have it.")
    ]


class Status(Struct):
    """How the server is."""

    status: str


class Version(Struct):
    """What is running."""

    version: str
    kernels: Annotated[str, Meta(description="Support counting: numpy or numba.")]


class FieldError(Struct):
    """A field of the request that does not fit."""

    field: str
    reason: str


class ProblemDetails(Struct, omit_defaults=True):
    """RFC 9457 problem."""

    type: str
    title: str
    status: int
    detail: str | UnsetType = UNSET
    position: Annotated[int | UnsetType, Meta(description="Of an invalid report: its index.")] = (
        UNSET
    )
    errors: Annotated[
        list[FieldError] | UnsetType, Meta(description="Of an invalid request: the field.")
    ] = UNSET


def schemas(*types: Any) -> dict[str, Any]:
    """Return the JSON schemas of these types, and of those they hold, by name."""
    return msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")[1]


def _resolve() -> None:
    """Have msgspec find out now, in one thread, what the fields of each type are.

    It does so when a type is first used, and not safely: two threads that use one for the first
    time at once end the process with a segmentation fault.
    """
    for name in __all__:
        msgspec.json.Decoder(globals()[name])


_resolve()

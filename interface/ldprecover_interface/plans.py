"""Plans: the errors and risks of rounds that are not open yet."""

from typing import Literal

from pydantic import Field

from ldprecover_interface.base import Message, Text


class PlanRequest(Message):
    """The parameters of the plan; null if they were not given."""

    domain_size: int | None
    users: int | None
    epsilon: float | None
    error: float | None
    sum_of: int
    frequency: float | None
    targets: int | None
    beta: float | None
    gain: float | None
    lead: float | None


class PlannedGain(Message):
    """The largest rise that an attack causes in the sum of the targets' estimates.

    No honest user holds the targets.
    """

    attack: Text
    sends: str
    gain: float | None
    reason: str | None = Field(description="Why no gain is stated.")


class WorstGain(Message):
    """How far malicious reports of any kind can move the sum of these estimates."""

    rise: float
    fall: float
    projected_rise: float = Field(description="The rise if the result is made a distribution.")
    projected_fall: float


class PlannedProtocol(Message):
    """The plan of one protocol; fields are null if the protocol cannot meet it."""

    protocol: Text
    own: dict[str, int] = Field(description="The protocol's own parameters by name.")
    reason: Text | None = Field(description="Why the protocol cannot meet the plan.")
    domain_size: int | None
    users: int | None
    epsilon: float | None
    standard_error: float | None = Field(description="Of the estimate or the sum.")
    margin: float | None = Field(description="Half of its 95 % interval.")
    margin_of_all: float | None = Field(
        description="Half of the intervals that hold for all items together at 95 %."
    )
    report_size: int | None = Field(description="Bytes.")
    hash_tests: float | None = Field(description="Hash evaluations needed to count all reports.")
    stored_bytes: int | None = Field(
        description="Bytes stored for methods that read reports: the tally and, unless that is the "
        "histogram of the reports, every report."
    )
    retention: Literal["none", "forever"] | None = Field(
        description="The retention to open the round with: `none` if the tally is the histogram of "
        "the reports."
    )
    can_quarantine: bool | None = Field(
        description="Whether such a round can be opened with `quarantine`."
    )
    targets: int | None
    beta: float | None = Field(description="Share of malicious users among all users.")
    gains: list[PlannedGain]
    worst: WorstGain | None
    safe_lead: float | None = Field(
        description="The least lead of one estimate over another that a certificate at 95 % proves "
        "if a share beta of the reports is malicious; null if it proves none."
    )


class PlannedCurves(Message):
    """Standard errors by protocol, over epsilon and over users; null where there is no plan."""

    epsilon: list[float]
    users: list[int]
    over_epsilon: dict[str, list[float | None]]
    over_users: dict[str, list[float | None]]


class Plans(Message):
    """The plan of each protocol; the best comes first, those that cannot meet it last."""

    solved: Literal["domain_size", "users", "epsilon", "error"] = Field(
        description="The parameter that follows from the others."
    )
    wish: PlanRequest | None
    protocols: list[PlannedProtocol]
    curves: PlannedCurves | None = Field(description="If they were requested.")

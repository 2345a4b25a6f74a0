"""Plans: the errors and risks of rounds that are not open yet."""

from typing import Literal

from pydantic import Field

from ldprecover_interface.base import Message, Text
from ldprecover_interface.verdicts import UnseenGain


class PlanParameters(Message):
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
    change: float | None


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
    targets: int | None
    beta: float | None = Field(description="Share of malicious users among all users.")
    gain: float | None = Field(
        description="The most that MGA by these users adds to the estimates of the targets "
        "together, as a frequency, if nobody holds them."
    )
    unseen: UnseenGain | None = Field(description="Of at most 20 targets, if reports are stored.")
    safe_lead: float | None = Field(
        description="The least lead of one estimate over another that a certificate at 95 % proves "
        "if a share beta of the reports is malicious; null if it proves none."
    )
    least_change: float | None = Field(
        description="The least rise of one item between two such rounds that is seen with "
        "probability .8; null if none is."
    )
    attacker_success_rate: float | None = Field(
        description="The probability that whoever sees one report guesses its user's item; a blind "
        "guess has 1/d."
    )


class PlannedAccuracy(Message):
    """How exact one item's share of 1/d is with the best protocol. The margin is half the interval
    of 95 %, `largest_margin` that of any share; `_for_point` makes the margin 1 percentage point,
    `_for_share` the average share, 1/d, with at most these items. A number is null if it is not
    needed or if none is enough.
    """

    sentence: Text
    domain_size: int
    users: int
    margin: float
    largest_margin: float
    users_for_point: int | None
    items_for_point: int | None
    epsilon_for_share: float | None
    items_for_share: int | None


class Plans(Message):
    """The plan of each protocol; the best comes first, those that cannot meet it last."""

    solved: Literal["domain_size", "users", "epsilon", "error"] = Field(
        description="The parameter that follows from the others."
    )
    request: PlanParameters
    accuracy: PlannedAccuracy | None = Field(description="Null if no protocol meets the plan.")
    sentences: list[Text] = Field(
        description="What the plan says: the best round, what its attackers gain, and why other "
        "protocols cannot meet it."
    )
    protocols: list[PlannedProtocol]

"""Verdicts: what the server concludes of a round, unasked."""

from typing import Annotated

from pydantic import Field

from ldprecover_interface.base import Message, Text

MAX_RAISED = 20
"""Raised items that a verdict names."""
MAX_TOP = 10
"""Most frequent items that a verdict names."""
MAX_TOP_LABEL = 80
"""Characters of their labels."""


class TopItem(Message):
    """One of the most frequent items of a recovery."""

    item: int = Field(ge=0, description="Index.")
    label: Annotated[Text, Field(max_length=MAX_TOP_LABEL)] = Field(
        description=f"At most {MAX_TOP_LABEL} characters: a longer label is cut and ends with …."
    )
    estimate: float = Field(description="Recovered frequency.")


Attack = Annotated[
    str,
    Field(
        json_schema_extra={"enum": ["none_seen", "cannot_be_seen", "possible", "near_certain"]},
    ),
]


class UnseenGain(Message):
    """The largest gain of some items together that no test sees, as a frequency."""

    items: int
    share: float = Field(description="Of malicious reports.")
    gain: float
    untested: float = Field(description="Without any test.")


class Verdict(Message):
    """What the recommended recovery, the alarms and a certificate conclude of a round."""

    reports: int = Field(
        ge=0,
        description="Number of reports it was computed from: of an open round not the last ones.",
    )

    attack: Attack = Field(
        description="`near_certain` from a probability of 0.9 or a proven share of 0.1 on; else "
        "`possible` if the evidence has a p-value below 0.05, an alarm is raised, or any share of "
        "malicious reports is proven; else `cannot_be_seen` if the first of the `unseen` gains is "
        "0.9 or more of the one without any test; else `none_seen`. Lies told honestly and mimicry "
        "stay unseen."
    )
    attack_probability: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="Probability of a visible attack; null if the recovery states none."
    )
    unseen: list[UnseenGain] = Field(description="Of ten and twenty items, or half of all.")
    malicious_share: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="Least share of malicious reports among all that shows; null if the recovery "
        "states none."
    )
    least_malicious_share: Annotated[float, Field(ge=0, le=1)] = Field(
        description="Share of malicious reports that the counts prove, with a confidence of 95 %."
    )
    raised: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MAX_RAISED)] = Field(
        description="Indices of items that reports raised, the most probable first."
    )
    top: Annotated[list[TopItem], Field(max_length=MAX_TOP)] = Field(
        description="The most frequent items by the recommended recovery, the first first; none "
        "if the noise exceeds what tells the items apart."
    )
    sentences: list[Text] = Field(
        description="What the reports show of an attack, and what to do, as text; labels in it are "
        "untrusted, and cut as those of `top`."
    )

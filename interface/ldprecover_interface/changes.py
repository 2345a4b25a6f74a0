"""Changes between two rounds or windows of rounds: the request and the response."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ldprecover.sentences import DOWN, percent
from ldprecover_interface.base import (
    Column,
    Count,
    Message,
    Numbers,
    Request,
    Text,
    Window,
    optional,
)
from ldprecover_interface.results import Columns, RoundResult, plain_column
from ldprecover_interface.rounds import Items
from ldprecover_interface.verdicts import Verdict

_COLUMNS = (
    *("changes", "standard_errors", "lower", "upper"),
    *("certified_lower", "certified_upper", "words", "proven_up_to"),
)
Word = Annotated[str, Field(json_schema_extra={"enum": ["rose", "fell", "not_proven"]})]


class ChangesRequest(Request):
    """What to compare with, and what to assume; every field is optional."""

    since: str | None = Field(
        default=None,
        description="Id or name of an earlier round that asks the same; without it the last round "
        "or window of the series that ends before this one, of a form at the same place.",
    )
    window: Window = 1
    malicious_share: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="The largest share of malicious reports among those of either side.",
    )
    confidence: float = Field(default=0.95, ge=0.5, lt=1, description="Of all intervals together.")
    people: Literal["sample", "same"] = Field(
        default="sample",
        description="Whether the people of each side are a random sample, or the same in both. "
        "Of a form they are a sample.",
    )


class Sides(Message):
    """The verdicts of what is compared."""

    since: Verdict
    round: Verdict


class Changed(RoundResult):
    """The changes from one round or window to a later one, with intervals that hold together."""

    model_config = ConfigDict(
        json_schema_extra=optional("question", "window", "numbers", "since_numbers")
    )

    since: Text = Field(description="Id of the earlier round, the last of its window.")
    since_numbers: Numbers = Field(default=[])
    n: Count
    since_n: Count
    verdicts: Sides = Field(
        description="Of all reports of a side, or of one round of its window that is "
        "`near_certain` to be attacked."
    )
    malicious_share: float = Field(
        description="Of the certified intervals: the assumed share, or a larger one that a side "
        "proves."
    )
    confidence: float
    words_from: str = Field(
        json_schema_extra={"enum": ["interval", "certificate"]},
        description="The intervals that decide the words: the certified ones if a verdict is "
        "`possible` or `near_certain`.",
    )
    items: Items
    changes: Annotated[Column, Field(description="Differences of the unbiased estimates.")]
    standard_errors: Column
    lower: Annotated[Column, Field(description="Lower ends if no report is malicious.")]
    upper: Annotated[Column, Field(description="Upper ends.")]
    certified_lower: Annotated[Column, Field(description="Lower ends of the certified intervals.")]
    certified_upper: Annotated[Column, Field(description="Upper ends.")]
    words: list[Word]
    proven_up_to: list[float | None] = Field(
        description="The largest malicious share at which the change is certified, if any."
    )

    @property
    def number(self) -> int | None:
        """The number of the round in its series."""
        return self.numbers[-1] if self.numbers else None

    @property
    def since_number(self) -> int | None:
        """The number of the earlier round in its series."""
        return self.since_numbers[-1] if self.since_numbers else None

    @property
    def _vectors(self) -> Columns:
        return {
            name.removesuffix("s"): plain_column(getattr(self, name), self.items)
            for name in _COLUMNS
        }

    def sentence(self, item: int) -> str:
        """Return what is proven of an item's change, by the intervals that decide the words.

        changed.sentence(0)     # 'no change proven: between −17.9 and +3.9 points'
        """
        ends = (self.lower, self.upper)
        if self.words_from == "certificate":
            ends = (self.certified_lower, self.certified_upper)
        between = f"between {' and '.join(_points(end[item]) for end in ends)} points"
        word, share = self.words[item], self.proven_up_to[item]
        if word == "not_proven":
            return f"no change proven: {between}"
        stands = "holds only without fakes"
        if share is not None:
            stands = f"certified up to {percent(share, DOWN)} of fakes"
        return f"{word} by {_points(self.changes[item])[1:]} points: {between}; {stands}"


def _points(share: float) -> str:
    """Return a share in points with a sign: −17.9."""
    points = 100 * share
    return f"{points:+.{1 if abs(points) >= 1 else 2}f}".replace("-", "\N{MINUS SIGN}")

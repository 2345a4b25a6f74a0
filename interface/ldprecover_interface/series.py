"""Series: rounds, or forms, that ask the same thing again."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ldprecover_interface.base import Count, Message, Reference, Request, Text, optional
from ldprecover_interface.rounds import ClosesAt

Number = Annotated[int, Field(ge=1)]


class NextNumber(Request):
    """The number of a series to open."""

    number: Number = Field(description="The number after the last; the last is opened once.")
    closes_at: ClosesAt = None


class SeriesEntry(Message):
    """A round or form of a series."""

    id: Reference
    name: Text
    number: Number
    state: Literal["open", "closed"]
    n: Count = Field(description="Number of reports counted, in all rounds of a form.")
    opened_at: Text
    closes_at: ClosesAt
    closed_at: Text | None


class Series(Message):
    """A series: it has either `rounds` or `forms`, the newest first."""

    model_config = ConfigDict(json_schema_extra=optional("rounds", "forms"))

    series: Text
    number: Number = Field(description="The last number that was opened.")
    current: dict[Literal["round", "form"], Reference] | None = Field(
        description="The id of the open round or form; null while nothing is open.",
        examples=[{"round": "R0123456789abcdef01234567"}],
    )
    rounds: list[SeriesEntry] = Field(default=[])
    forms: list[SeriesEntry] = Field(default=[])

    @property
    def entries(self) -> list[SeriesEntry]:
        """Its rounds or forms, the newest first."""
        return self.rounds or self.forms


class SeriesList(Message):
    """All series, in the order of their names."""

    series: list[Series]

"""Forms: several rounds that open and close together, of which each person answers one."""

from typing import Annotated, Literal

from pydantic import Field

from ldprecover.rounds.parameters import TEXTS
from ldprecover_interface.base import ROUND_NAME, Message, Reference, Text
from ldprecover_interface.rounds import InSeries, RoundSettings, RoundSummary

Assign = Annotated[
    Literal["ticket", "client"],
    Field(
        description="Who draws the round that a person answers. `ticket`: the ticket, and nobody "
        "can choose: the first 64 bits of its MAC, little-endian, modulo the number of rounds are "
        "the index. `client`: the client, so an attacker can put every report into one round."
    ),
]


class NewQuestion(RoundSettings):
    """A round of a form to open. Its access is `ticket` if tickets assign the rounds."""

    question: Text = Field(max_length=TEXTS["question"], description="What the round asks.")


class NewForm(InSeries):
    """A form to open: rounds of which each person answers one."""

    name: Annotated[str, Field(pattern=ROUND_NAME, max_length=61)] | None = Field(
        default=None,
        description="Unique among forms; by default series and number, or else random.",
    )
    title: Text | None = None
    assign: Assign
    rounds: list[NewQuestion] = Field(
        min_length=1,
        max_length=50,
        description="The default name of a round is that of the form, a hyphen, and its number.",
    )


class Form(Message):
    """A form with its rounds, which open and close together."""

    id: Reference
    name: Text
    title: Text | None
    assign: Assign
    rounds: list[RoundSummary] = Field(min_length=1, description="Their order never changes.")

    @property
    def n(self) -> int:
        """Number of reports counted in all rounds."""
        return sum(round.n for round in self.rounds)


class FormList(Message):
    """Forms; the first was opened last."""

    forms: list[Form]

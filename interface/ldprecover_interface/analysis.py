"""Analyses: recovery methods and alarms."""

from typing import Literal

from pydantic import Field

from ldprecover_interface.base import Count, Message, Text


class MethodOption(Message):
    """An option of a method: a number in a range, or one of `choices`."""

    name: Text
    default: int | float | str = Field(description="An integer if the option is an integer.")
    low: int | float | None
    high: int | float | None
    meaning: str
    choices: list[str] = Field(description="The values of an option that is a text.")


class MethodSummary(Message):
    """A recovery method, and whether it fits the round."""

    name: Text
    summary: Text
    needs: list[str] = Field(
        description="Required inputs, of counts, history, n, reports and targets."
    )
    source: Literal["counts", "tally", "reports"] = Field(
        description="What it reads in this round. The tally of a GRR, HR or LLH round takes the "
        "place of the reports, so none need be stored."
    )
    better_with: list[str] = Field(description="Inputs that are used if they are available.")
    uses: list[str] = Field(description="Fields of the request that change the result.")
    gives: str = Field(
        json_schema_extra={"enum": ["distribution", "sum-one", "frequencies"]},
        description="Kind of the column `recovered`: a distribution, numbers of sum one, or "
        "frequencies without either property.",
    )
    cost: str
    options: list[MethodOption]
    available: bool = Field(
        description="Whether this round can be recovered with it, given its inputs."
    )
    reason: str | None = Field(description="Why it is not available.")


class Methods(Message):
    """All recovery methods."""

    round: Text
    methods: list[MethodSummary]


class AlarmStatus(Message):
    """A test of the round's reports; it is raised if the statistic exceeds the threshold."""

    name: Text
    raised: bool
    statistic: float
    threshold: float
    rate: float = Field(
        description="Upper bound of the probability that honest reports raise the alarm."
    )
    meaning: Text


class Alarms(Message):
    """The tests for a round's protocol."""

    round: Text
    n: Count
    reports_read: bool = Field(
        description="Whether all reports are stored, or follow from the tally: then all tests ran."
    )
    alarms: list[AlarmStatus]
    sentences: list[Text] = Field(
        description="How many are raised, what that means, and what was tested."
    )

"""Results: frequencies, and the request and the result of a recovery."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from ldprecover.items import MAX_CANARIES, highest, largest
from ldprecover_interface.base import (
    MAX_HISTORY,
    Column,
    Count,
    Counts,
    Message,
    Numbers,
    Request,
    Text,
    Window,
    optional,
)
from ldprecover_interface.notebook import data_frame, html_table
from ldprecover_interface.rounds import Items
from ldprecover_interface.verdicts import Attack, UnseenGain

WINDOW_BEFORE = "window before"
"""The history of a recovery that is the window before; no round has this name."""
Columns = dict[str, Sequence[Any]]
"""Columns of a table by name, each with one value for each item."""

_ROWS = 10  # of a table in a notebook


def plain_column(column: Any, items: Sequence[str]) -> list[Any]:
    """Return a column, an array or a list, as a list; None for each item if it is None."""
    if column is None:
        return [None] * len(items)
    return column if isinstance(column, list) else column.tolist()


class MeanEstimate(Message):
    """The unbiased mean of users' numbers from -1 to 1, and its normal 95 % interval."""

    value: float
    standard_error: float
    low: float
    high: float


def recovery_columns(result: Any, items: Sequence[str]) -> Columns:
    """Return the columns of a recovery, the core's or the interface's, without its items."""
    stated, targets = result.conclusions, set(result.targets)
    vectors = {
        name: getattr(result, name) for name in ("poisoned", "malicious", "genuine", "recovered")
    }
    vectors["target"] = [i in targets for i in range(len(items))]
    vectors["standard_deviation"] = stated and stated.standard_deviations
    vectors |= {name: stated and getattr(stated, name) for name in ("lower", "upper")}
    return {name: plain_column(vector, items) for name, vector in vectors.items()}


class ColumnsMixin:
    """Adds a data frame of the `columns` of a result."""

    def to_frame(self: Any) -> Any:
        """Return a pandas data frame: a row for each label, with the columns of the CSV.

        Raises ImportError without pandas.
        """
        columns = {k: v for k, v in self.columns.items() if k not in ("item", "index")}
        return data_frame(columns, self.items)


class RoundResult(ColumnsMixin, Message, ABC):
    """A result for each item of a round, or of a window of rounds."""

    model_config = ConfigDict(json_schema_extra=optional("question", "window", "numbers"))

    round: Text
    question: Text | None = Field(default=None, description="Only if the round has one.")
    window: Window = 1
    numbers: Numbers = Field(default=[])

    if TYPE_CHECKING:  # each has them among its own fields
        items: list[str]

    @property
    def columns(self) -> Columns:
        """The table of all items, as in CSV; `index` is the place of an item, from 0."""
        return {"item": self.items, "index": range(len(self.items)), **self._vectors}

    @property
    @abstractmethod
    def _vectors(self) -> Columns: ...


class Frequencies(RoundResult):
    """Unbiased estimates, never clipped; columns are in the order of the items."""

    model_config = ConfigDict(
        json_schema_extra=optional("question", "window", "numbers", "mean", "notes")
    )

    protocol: Text
    epsilon: float
    n: Count
    p: float
    q: float
    items: Items
    counts: Annotated[Counts, Field(description="Support counts C(v).")]
    frequencies: Column | None
    standard_errors: Column | None = Field(description="About the users, or all people of a form.")
    sum: float | None = Field(
        description="Sum of the frequencies; its expectation is 1 if all reports are honest."
    )
    sum_standard_error: float | None = Field(
        description="Largest standard error of the sum if all reports are honest; null if unknown."
    )
    mean: MeanEstimate | None = Field(
        default=None,
        description='Only for rounds for numbers, which are GRR over the items "-1" and "1".',
    )
    notes: list[str] = Field(
        default=[],
        description="Only if the noise exceeds what tells the items apart: a sentence with both.",
    )

    @property
    def _vectors(self) -> Columns:
        return {
            "support": plain_column(self.counts, self.items),
            "frequency": plain_column(self.frequencies, self.items),
            "standard_error": plain_column(self.standard_errors, self.items),
        }

    def __repr__(self) -> str:
        top = "" if self.frequencies is None else f": {highest(self.frequencies, self.items)}"
        return (
            f"Frequencies({self.protocol}, epsilon {self.epsilon:g}, {self.n:,} reports, "
            f"{len(self.items):,} items{top})"
        )

    def _repr_html_(self) -> str:
        if self.frequencies is None or self.standard_errors is None:
            return html_table(["item"], [[label] for label in self.items[:_ROWS]], repr(self))
        rows = [
            [
                self.items[i],
                f"{100 * self.frequencies[i]:.2f} %",
                f"{100 * self.standard_errors[i]:.2f} points",
            ]
            for i in largest(self.frequencies, _ROWS)
        ]
        return html_table(["item", "frequency", "standard error"], rows, repr(self))


Eta = Annotated[float, Field(json_schema_extra={"minimum": 0, "maximum": 10})] | Literal["auto"]
MaliciousModel = Annotated[
    str,
    Field(json_schema_extra={"enum": ["paper", "exact", "padded", "searched", "solved", "custom"]}),
]
Share = Annotated[float, Field(json_schema_extra={"minimum": 0, "maximum": 1})]


class RecoveryQuery(Request):
    """How to recover; every field is optional."""

    # Types alone: `RecoveryRequest` of the core checks the values.

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"eta": 0.2, "targets": ["New York, NY", 5]}]}
    )

    eta: Eta = Field(
        default=0.2,
        description="Assumed number of malicious users per genuine user, m/n; `auto` estimates it "
        "if the counts allow it.",
    )
    targets: Annotated[list[str | int], Field(fail_fast=True)] = Field(
        default=[],
        description="Known target items, labels or indices; with targets the method is "
        "LDPRecover*.",
    )
    method: str = Field(
        default="ldprecover", description="Recovery method: see GET /rounds/{id}/methods."
    )
    malicious_model: MaliciousModel = Field(
        default="paper",
        description="The printed equations of LDPRecover*, or the corrected algebra; reports "
        "padded to an honest size (OUE, SUE, SS), with searched seeds (OLH) or with solved reports "
        "(HR, LLH); or the shares in `support`.",
    )
    support: Annotated[list[Share], Field(fail_fast=True)] | None = Field(
        default=None,
        description="For `custom`: the share of malicious reports that support each item.",
    )
    window: Window = 1
    options: dict[str, int | float | str] = Field(
        default={}, description="Options of the method by name."
    )
    history: list[str] = Field(
        default=[],
        max_length=MAX_HISTORY,
        description="Ids or names of closed rounds over the same items that are known to be clean; "
        f"or `{WINDOW_BEFORE}`, all rounds of the last window of the series that ends before this "
        "one, summed. It is refused if an attack on one of them is near certain.",
    )
    canaries: Annotated[list[str | int], Field(fail_fast=True)] = Field(
        default=[],
        description=f"At most {MAX_CANARIES} items, labels or indices, that are known to be held "
        "by nobody.",
    )


class SuspectedItem(Message):
    """An item that malicious reports may have raised; innocent items can be among them."""

    item: Annotated[int, Field(ge=0, description="Index.")]
    label: Text
    probability: float = Field(description="Probability that reports raised the item.")


class DroppedReports(Message):
    """Reports that a filter removed."""

    screen: Text = Field(description="The filter.")
    what: Text  # a field of the interface; phrases: quoted
    reports: Count


class RecoveryConclusions(Message):
    """The method's uncertainty, and its findings on the attack; null if it has none."""

    standard_deviations: Column | None
    lower: Column | None = Field(description="Lower ends of 95 % intervals.")
    upper: Column | None = Field(description="Upper ends of 95 % intervals.")
    attack: Attack | None = Field(description="As in a verdict, without alarms and proof.")
    attack_probability: float | None = Field(description="Of a visible attack.")
    unseen: list[UnseenGain] = Field(description="As in a verdict.")
    beta: float | None = Field(description="Least share of malicious reports among all that shows.")
    suspects: list[SuspectedItem] = Field(description="The most probable item first.")
    dropped: list[DroppedReports]
    history_weight: float | None = Field(
        description="Probability that the history applies to this round."
    )
    sentences: list[Text] = Field(
        description="All of it as text; labels in it are untrusted. Unless `attack` is null the "
        "first says what the reports show of an attack, and the second what to do."
    )


class Recovered(RoundResult):
    """A recovery from the poisoned counts; columns are in the order of the items."""

    method: Text
    eta: float
    targets: Annotated[list[int], Field(fail_fast=True, description="Indices of targets, sorted.")]
    malicious_model: Text
    n: int = Field(ge=1, lt=1 << 63, description="Number of reports counted.")
    malicious_sum: float = Field(description="(1-qd)/(p-q).")
    items: Items
    poisoned: Column
    malicious: Annotated[Column, Field(description="The assumed malicious frequencies.")]
    genuine: Annotated[Column, Field(description="The estimate before refinement.")]
    recovered: Annotated[Column, Field(description="The result: see `gives` of the method.")]
    notes: list[str] = Field(description="Remarks of the method on this result.")
    conclusions: RecoveryConclusions | None = Field(
        description="Of methods that state their uncertainty."
    )

    @property
    def _vectors(self) -> Columns:
        return recovery_columns(self, self.items)

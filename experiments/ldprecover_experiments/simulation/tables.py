"""Tables of strings in Markdown or HTML, and data frames."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldprecover_client.notebook import data_frame, html_table
from ldprecover_experiments.errors import ExperimentError


@dataclass(frozen=True)
class Table:
    """A header and rows of strings; the last `numbers` columns are numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numbers: int = 0

    def markdown(self) -> str:
        """Return the lines of the table, without the title."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return html_table(self.columns, self.rows, self.title)


def frame(columns: Mapping[str, Any], index: Sequence[str] | None = None) -> Any:
    """Return columns as a pandas data frame. Raises ExperimentError without pandas."""
    try:
        return data_frame(columns, index)
    except ImportError as error:
        raise ExperimentError(str(error)) from error


def shown_error(value: float) -> str:
    """Return an error with two digits, so that tables fit 80 columns."""
    return "refused" if np.isnan(value) else re.sub("e-0?", "e-", f"{value:.1e}")


def shown_gain(value: float | None) -> str:
    """Return a frequency gain as text; empty without targets."""
    return "" if value is None else f"{round(value, 2) + 0.0:.2f}"

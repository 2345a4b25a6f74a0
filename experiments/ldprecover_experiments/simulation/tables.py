"""Tables of strings in Markdown or HTML."""

from collections.abc import Sequence
from dataclasses import dataclass

from ldprecover_interface.notebook import html_table


@dataclass(frozen=True)
class TextTable:
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

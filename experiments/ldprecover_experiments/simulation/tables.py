"""Tables of strings in Markdown, HTML or LaTeX."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ldprecover_interface.notebook import html_table

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


@dataclass(frozen=True)
class TextTable:
    """A header and rows of strings; the last `numbers` columns are numbers.

    For `latex` there may be other numbers, `latex_numbers`, and `latex_unit` above them.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numbers: int = 0
    _: KW_ONLY
    latex_numbers: Sequence[Sequence[str]] = ()
    latex_unit: str = ""

    def markdown(self) -> str:
        """Return the lines of the table, without the title."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def latex(self) -> str:
        """Return the table for LaTeX with the package booktabs, below its title as a comment."""
        texts = len(self.columns) - self.numbers
        above = rf"\multicolumn{{{self.numbers}}}{{c}}{{{self.latex_unit}}}"
        rule = rf"\cmidrule{{{texts + 1}-{len(self.columns)}}}"
        numbers = self.latex_numbers or [row[texts:] for row in self.rows]
        rows = [
            [*map(_escaped, row[:texts]), *each]
            for row, each in zip(self.rows, numbers, strict=True)
        ]
        lines = [
            f"% {_escaped(self.title)}",
            rf"\begin{{tabular}}{{{'l' * texts}{'r' * self.numbers}}} \toprule",
            *([rf"{'& ' * texts}{above} \\ {rule}"] if self.latex_unit else []),
            rf"{' & '.join(map(_escaped, self.columns))} \\ \midrule",
            *(rf"{' & '.join(row)} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return html_table(self.columns, self.rows, self.title)


def _escaped(text: str) -> str:
    """Return an untrusted text for LaTeX, in one line."""
    return " ".join(text.translate(_LATEX).split())

"""Tables of the pages, from the results of the studies that they name.

`ldprecover study run` writes the results of the studies to a folder, and
`python -m tests.statistical.page_tables FOLDER` writes their tables to the pages.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.docs.markdown import ROOT

from ldprecover.protocols import PROTOCOLS
from ldprecover_experiments import Results

RESULTS = ROOT / "docs" / "measurements" / "results.md"
COMPARISONS = ROOT / "docs" / "explanation" / "comparisons.md"
FORMS = ROOT / "docs" / "explanation" / "forms.md"

Frame = Any  # of pandas
Cell = Callable[[Frame], str]
Entries = dict[str, dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table, which the first cell of its header names in the page.

    Its rows are the values of one or more parameters of the trials that `shown` selects. Its
    columns are those of the parameter `by`, with a text of their trials, and then `columns`.
    """

    page: Path = RESULTS
    study: str
    rows: str | list[str]
    shown: str = "method == method"
    by: str = ""
    cell: Cell = str
    columns: Mapping[str, Cell] = field(default_factory=dict)

    def entries(self, results: Results) -> Entries:
        """Return the text of each cell, by row and column."""
        frame = with_ratios(results.to_frame()).query(self.shown)
        entries = {}
        for row, trials in frame.groupby(self.rows, sort=False):
            parts = trials.groupby(self.by, sort=False) if self.by else ()
            entries[row] = {titled(value): self.cell(part) for value, part in parts}
            entries[row] |= {name: cell(trials) for name, cell in self.columns.items()}
        return entries


def titled(value: Any) -> str:
    """Return the title of a row or column: a protocol has capitals, an epsilon its letter."""
    if isinstance(value, tuple):
        return ", ".join(map(titled, value))
    if isinstance(value, float):
        return f"ε = {value:g}"
    return str(value).upper() if value in PROTOCOLS else str(value)


def with_ratios(frame: Frame) -> Frame:
    """Return the frame with two columns of ratios of errors.

    `ratio` is projection's over the method's in the same trial. `price` is the method's over the
    mean of projection in the same world without an attack.
    """
    world = ["data", "protocol", "epsilon", "eta", "questions", "assign"]
    trial = [*world, "attack", "beta", "trial"]
    projected = frame[frame.method == "norm-sub"]
    clean = projected[projected.attack == "none"].groupby(world).mse.mean()
    in_trial = frame[trial].join(projected.set_index(trial).mse, on=trial).mse
    in_world = frame[world].join(clean, on=world).mse
    return frame.assign(ratio=in_trial / frame.mse, price=frame.mse / in_world)


def gain(trials: Frame) -> str:
    """Return the mean gain, with a sign; empty without targets."""
    mean = trials.fg.astype(float).mean()
    return "" if np.isnan(mean) else f"{round(mean, 2) + 0.0:+.2f}"


def left(trials: Frame) -> str:
    """Return the mean error, and in brackets the gain."""
    error = f"{trials.mse.mean():.1e}".replace("e-0", "e-")
    return f"{error} ({gained})" if (gained := gain(trials)) else error


def gain_and_probability(trials: Frame) -> str:
    """Return the gain of the poisoned estimate, and in brackets the P of un-mixing."""
    probability = trials[trials.method == "unmix"].attack_probability.astype(float).mean()
    stated = "" if np.isnan(probability) else f"({probability:.2f})"
    return f"{gain(trials[trials.method == 'poisoned'])} {stated}".strip()


def short(ratio: float) -> str:
    """Return a ratio with two digits, or more before its point."""
    digits = 2 if ratio < 0.995 else int(ratio < 9.95)
    return f"{ratio:#.2g}" if ratio < 0.1 else f"{ratio:.{digits}f}"


def mean_ratio(trials: Frame) -> str:
    """Return the geometric mean of projection's error over the method's."""
    return short(np.exp(np.log(trials.ratio).mean()))


def attacked(cell: Cell) -> Cell:
    """Return the cell of the trials with an attack."""
    return lambda trials: cell(trials[trials.attack != "none"])


def worst(attack: str, number: str) -> Cell:
    """Return a cell of the largest of the means of a number in the four worlds."""

    def cell(trials: Frame) -> str:
        means = trials.query(attack).groupby(["data", "protocol", "attack"])[number].mean()
        return short(means.max()) if number == "price" else f"{means.max():.2f}"

    return cell


def least(trials: Frame) -> str:
    """Return the least ratio of a trial."""
    return short(trials.ratio.min())


def coverage(trials: Frame) -> str:
    """Return the mean coverage of the intervals."""
    return f"{trials.coverage.astype(float).mean():.2f}"


def ours(protocol: str) -> PageTable:
    """Return the table of the errors of all methods on a protocol, in the page's largest study."""
    attacks = ["none", "mga", "mga-a", "apa", "cancel", "mimicry"]
    shown = f"protocol == '{protocol}' and attack in {attacks} and method != 'genuine'"
    return PageTable(study="crafted", rows="method", shown=shown, by="attack", cell=left)


TABLES = {
    "gain": PageTable(
        study="crafted",
        rows="attack",
        shown="method in ['poisoned', 'unmix']",
        by="protocol",
        cell=gain_and_probability,
    ),
    "after `unmix`": PageTable(
        study="crafted",
        rows="attack",
        shown="method == 'unmix' and protocol != 'hr'",
        by="protocol",
        cell=lambda trials: f"{mean_ratio(trials)} ({gain(trials)})".replace(" ()", ""),
    ),
    "OUE": ours("oue"),
    "OLH": ours("olh"),
    "six data sets": PageTable(
        study="unmix",
        rows="method",
        shown="method not in ['genuine', 'poisoned', 'norm-sub']",
        by="data",
        cell=attacked(mean_ratio),
        columns={
            "none": lambda trials: mean_ratio(trials[trials.attack == "none"]),
            "least": least,
            "better": lambda trials: f"{(trials.ratio > 1).mean():.0%}".replace("%", " %"),
        },
    ),
    "no attack": PageTable(
        study="clean",
        rows="protocol",
        shown="method == 'unmix' and protocol != 'hr'",
        by="epsilon",
        cell=mean_ratio,
        columns={"least": least, "intervals": coverage},
    ),
    "attack on `unmix`": PageTable(
        study="framing",
        rows="attack",
        shown="method == 'unmix'",
        columns={"ratio": mean_ratio, "least": least, "intervals": coverage},
    ),
    "gain, k =": PageTable(
        page=FORMS,
        study="forms",
        rows=["protocol", "assign"],
        shown="attack == 'mga' and method == 'poisoned'",
        by="questions",
        cell=gain,
    ),
    "method": PageTable(
        page=COMPARISONS,
        study="comparison",
        rows="method",
        shown="method != 'genuine'",
        columns={
            "clean": worst("attack == 'none'", "price"),
            "worst": worst("attack != 'none'", "price"),
            **{
                name: worst(f"attack == '{name}'", "fg")
                for name in ("mga", "apa", "cancel", "mimicry")
            },
        },
    ),
}


def lines_of(name: str) -> tuple[str, list[str]]:
    """Return the text of the page that has a table, and the table's lines."""
    text = TABLES[name].page.read_text(encoding="utf-8")
    match = re.search(rf"^\| {re.escape(name)} \|.*\n(\|.*\n)+", text, re.MULTILINE)
    assert match, f"no table with the header {name}"
    return text, match[0].splitlines()


def stated(name: str) -> Entries:
    """Return the text of each cell of a table of a page, by row and column."""
    header, _, *rows = (
        [cell.strip() for cell in line[1:-1].split("|")] for line in lines_of(name)[1]
    )
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


def markdown(name: str, entries: Entries) -> list[str]:
    """Return the lines of a table; a cell that is not there is empty."""
    columns = list(dict.fromkeys(column for row in entries.values() for column in row))
    rows = [
        [titled(row), *(cells.get(name, "") for name in columns)] for row, cells in entries.items()
    ]
    header, *body = (f"| {' | '.join(row)} |" for row in ([name, *columns], *rows))
    return [header, "|" + "---|" * (len(columns) + 1), *body]


def main(folder: Path) -> None:
    """Write the tables of the studies whose results are in a folder to their pages."""
    for name, table in TABLES.items():
        file = folder / f"{table.study}.json"
        if file.exists():
            entries = table.entries(Results.from_json(file.read_bytes()))
            text, lines = lines_of(name)
            written = text.replace("\n".join(lines), "\n".join(markdown(name, entries)))
            table.page.write_text(written, encoding="utf-8")
            sys.stdout.write(f"{name}: {table.page}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

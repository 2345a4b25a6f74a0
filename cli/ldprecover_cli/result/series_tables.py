"""Tables of the last rounds of a series, with all their changes proven together."""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldprecover.items import isolated, largest
from ldprecover_cli.errors import CommandError
from ldprecover_cli.output import console, plain, plain_table, print_json, print_question
from ldprecover_cli.result.table_files import columns_of, write_table

if TYPE_CHECKING:
    from rich.console import Console

    from ldprecover_client import Changed, Client, Frequencies, Verdict

_LAST = 8  # rounds or windows of a table
_ERROR = 0.05  # of all intervals of all tables
_MARKS = {"rose": "+", "fell": "-", "not_proven": " "}


def print_attack(out: "Console", name: str, verdict: "Verdict") -> None:
    """Print what a verdict says of an attack, if it sees one."""
    if verdict.attack in ("possible", "near_certain"):
        out.print(plain(f"{name}: {verdict.sentences[0]}"))


def show_series(
    client: "Client", name: str, window: int, *, top: int, output: Path | None, json: bool
) -> None:
    """Show the last rounds, or windows that do not overlap, of each question of a series.

    Each is compared with the one before and with the first: 2T - 3 comparisons of T rounds. Rounds
    without reports are left out. Raises CommandError for fewer than two.
    """
    questions = _questions(client, name, window)
    number = len(questions) * (2 * len(questions[0]) - 3)
    shown, changes = [], list["Changed"]()
    for rounds in questions:
        # The first change is also one since the first round.
        pairs = [*pairwise(rounds), *((rounds[0], after) for after in rounds[2:])]
        table = [
            client.changes(after, before, window=window, confidence=1 - _ERROR / number)
            for before, after in pairs
        ]
        shown.append(([client.frequencies(each, window=window) for each in rounds], table))
        changes += table
    if output is not None:
        write_table(output, columns_of(changes, "question", "number", "since_number"))
    if json:
        print_json({"changes": changes})
        return
    for columns, table in shown:
        _print_table(name, columns, table, top)
    console().print(
        "+ and - mark a proven rise and fall since the column before. The intervals of all "
        f"{number} comparisons hold together with {100 * (1 - _ERROR):.0f} %."
    )


def _questions(client: "Client", name: str, window: int) -> list[Sequence[str]]:
    """Return the ids of the rounds to show for each question, the oldest first."""
    series, ids, last = client.series(name), list[str](), math.inf
    for entry in series.entries:
        if entry.n and window <= entry.number <= last:
            ids.insert(0, entry.id)
            last = entry.number - window
    ids = ids[-_LAST:]
    if len(ids) < 2:
        raise CommandError(f"the series {name} has no two rounds with reports to compare")
    if not series.forms:
        return [ids]
    return list(zip(*([round.id for round in client.form(id).rounds] for id in ids), strict=True))


def _print_table(
    name: str, columns: Sequence["Frequencies"], changes: Sequence["Changed"], top: int
) -> None:
    out, first = console(), columns[0]
    out.print(f"{plain(name)}: percent of the reports, by number in the series")
    print_question(out, first.question)
    steps = changes[: len(columns) - 1]
    verdicts = [steps[0].verdicts["since"], *(step.verdicts["round"] for step in steps)]
    for column, verdict in zip(columns, verdicts, strict=True):
        print_attack(out, f"Number {column.numbers[-1]}", verdict)
    marks = [dict.fromkeys(range(len(first.items)), " ")] + [
        {i: _MARKS[word] for i, word in enumerate(step.words)} for step in steps
    ]
    shares: list[Any] = [column.frequencies for column in columns]
    rows = (
        (
            isolated(first.items[i]),
            *(f"{100 * f[i]:.1f}{mark[i]}" for f, mark in zip(shares, marks, strict=True)),
            changes[-1].words[i].replace("not_proven", ""),
        )
        for i in largest(shares[-1], top).tolist()
    )
    heads = (f"{column.numbers[-1]} " for column in columns)
    since = f"since {first.numbers[-1]}"
    out.print(plain_table("item", *heads, since, rows=rows, numbers=len(columns) + 1))

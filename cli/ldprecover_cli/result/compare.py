"""`result compare`: what changed since an earlier round, or over the last rounds of a series."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ldprecover.items import isolated, largest
from ldprecover.sentences import counted, percent
from ldprecover_cli import completion
from ldprecover_cli.connection import connected, connected_to
from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cli.item_tables import Top, print_rest
from ldprecover_cli.options import (
    CURRENT,
    DEFAULT_URL,
    Json,
    Key,
    RoundOrFormArgument,
    Url,
    Window,
)
from ldprecover_cli.output import (
    console,
    plain,
    plain_table,
    print_json,
    print_question,
    print_window,
)
from ldprecover_cli.result.questions import show_results
from ldprecover_cli.result.table_files import TableFile, columns_of, write_table

if TYPE_CHECKING:
    from ldprecover_client import Changed, Client, Frequencies

_ERROR = 0.05  # of all intervals of all tables
_MARKS = {"rose": "+", "fell": "-", "not_proven": " "}


def compare(
    round: RoundOrFormArgument = CURRENT,
    *,
    since: Annotated[
        str | None,
        Option(
            help="The earlier round; when absent the one before in the series.",
            metavar="ROUND",
            autocompletion=completion.rounds,
        ),
    ] = None,
    window: Window = 1,
    series: Annotated[
        str | None,
        Option(help="In place of a round: the last rounds of this series.", metavar="SERIES"),
    ] = None,
    last: Annotated[
        int, Option(min=2, help="With --series: the number of rounds, or of windows.")
    ] = 12,
    top: Top = 20,
    output: TableFile = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show what changed since an earlier round, and what is proven of it.

    An item rose or fell if its interval excludes 0; the intervals of all items, and with --series
    of all comparisons, hold together with 95 %. If a verdict sees an attack, they hold whatever 5 %
    of malicious users sent. A form is compared question by question.

    Example: ldprecover result compare usage-14

    Example: ldprecover result compare november --since october

    Example: ldprecover result compare --series usage --window 13 --output usage.csv
    """
    if series is not None:
        if since or round != CURRENT:
            raise UsageError("give a round to compare, or --series, not both")
        with connected(url, key, scope="analyst") as client:
            _show_series(client, series, window, last=last, top=top, output=output, json=json)
        return
    with connected_to(round, url, key) as (client, target):
        changes = partial(client.changes, since=since, window=window)
        show = partial(_show_changes, top=top, since=since)
        of_one = "--since" if since else None
        show_results(client, target, changes, show, of_one=of_one, output=output, json=json)


def _show_changes(result: "Changed", title: str, top: int, since: str | None) -> None:
    out = console()
    earlier = since or f"number {result.since_numbers[-1]}"
    reports = f"{result.n:,} and {counted(result.since_n, 'report')}"
    out.print(f"{title} since {plain(earlier)}: {reports}")
    print_question(out, result.question)
    for name, verdict, numbers in (
        (title, result.verdicts.round, result.numbers),
        (earlier, result.verdicts.since, result.since_numbers),
    ):
        out.print(plain(f"{name}: {verdict.sentences[0]}"))
        print_window(out, result.window, numbers)
    # What is proven comes first, since no change is larger than 1.
    order = abs(result.changes) + [word != "not_proven" for word in result.words]
    rows = ((isolated(result.items[i]), result.sentence(i)) for i in largest(order, top).tolist())
    out.print(plain_table("", "", rows=rows))
    print_rest(out, len(result.items) - top)
    condition = "if no report is malicious"
    if result.words_from == "certificate":
        share = percent(result.malicious_share)
        condition = f"if at most {share} of the reports of each side are malicious"
    out.print(f"All intervals hold together with {percent(result.confidence)}, {condition}.")


def _show_series(
    client: "Client",
    name: str,
    window: int,
    *,
    last: int,
    top: int,
    output: Path | None,
    json: bool,
) -> None:
    """Show the last rounds, or windows that do not overlap, of each question of a series.

    Each is compared with the one before and with the first: 2T - 3 comparisons of T rounds. Rounds
    without reports are left out. Raises CommandError for fewer than two.
    """
    questions = _questions(client, name, window, last)
    number = sum(2 * len(rounds) - 3 for rounds in questions)
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
        "+ and - mark a proven rise and fall since the column before. The intervals of "
        f"{counted(number, 'comparison')} hold together with {100 * (1 - _ERROR):.0f} %. "
        "Where no attack is named above, they hold only without malicious reports."
    )


def _questions(client: "Client", name: str, window: int, last: int) -> list[list[str]]:
    """Return the ids of the last rounds with reports for each question, the oldest first."""
    series, ids, latest = client.series(name), list[str](), math.inf
    for entry in series.entries:
        if entry.n and window <= entry.number <= latest:
            ids.insert(0, entry.id)
            latest = entry.number - window
    questions = [ids[-last:]]
    if series.forms:
        forms = zip(*(client.form(id).rounds for id in questions[0]), strict=True)
        questions = [[round.id for round in rounds if round.n] for rounds in forms]
    questions = [rounds for rounds in questions if len(rounds) > 1]
    if not questions:
        rounds = "rounds" if window == 1 else f"windows of {window} rounds"
        raise CommandError(f"the series {name} has no two {rounds} with reports to compare")
    return questions


def _print_table(
    name: str, columns: Sequence["Frequencies"], changes: Sequence["Changed"], top: int
) -> None:
    out, first = console(), columns[0]
    rounds = "" if first.window == 1 else f" of {first.window} rounds each"
    out.print(f"{plain(name)}: percent of the reports{rounds}, by number in the series")
    print_question(out, first.question)
    steps = changes[: len(columns) - 1]
    verdicts = [steps[0].verdicts.since, *(step.verdicts.round for step in steps)]
    for column, verdict in zip(columns, verdicts, strict=True):
        if verdict.attack in ("possible", "near_certain"):
            out.print(plain(f"Number {column.numbers[-1]}: {verdict.sentences[0]}"))
    words = [["not_proven"] * len(first.items), *(step.words for step in steps)]
    shares: list[Any] = [column.frequencies for column in columns]
    rows = (
        (
            isolated(first.items[i]),
            *(f"{100 * f[i]:.1f}{_MARKS[word[i]]}" for f, word in zip(shares, words, strict=True)),
            changes[-1].words[i].replace("not_proven", ""),
        )
        for i in largest(shares[-1], top).tolist()
    )
    heads = (f"{column.numbers[-1]} " for column in columns)
    since = f"since {first.numbers[-1]}"
    out.print(plain_table("item", *heads, since, rows=rows, numbers=len(columns) + 1))

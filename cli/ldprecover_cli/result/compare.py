"""`result compare`: what changed since an earlier round, or over the last rounds of a series."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover.items import isolated, largest
from ldprecover.sentences import counted, percent
from ldprecover_cli import completion
from ldprecover_cli.connection import connected, connected_to
from ldprecover_cli.errors import UsageError
from ldprecover_cli.item_tables import Top
from ldprecover_cli.options import (
    CURRENT,
    DEFAULT_URL,
    Json,
    Key,
    RoundOrFormArgument,
    Url,
    Window,
)
from ldprecover_cli.output import console, plain, plain_table, print_question, print_window
from ldprecover_cli.result.questions import results_of, show_results
from ldprecover_cli.result.series_tables import print_attack, show_series
from ldprecover_cli.result.table_files import TableFile, check_table_file

if TYPE_CHECKING:
    from ldprecover_client import Changed


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
    check_table_file(output)
    if series is not None:
        if since or round != CURRENT:
            raise UsageError("give a round to compare, or --series, not both")
        with connected(url, key, scope="analyst") as client:
            show_series(client, series, window, top=top, output=output, json=json)
        return
    with connected_to(round, url, key) as (client, target):
        changes = partial(client.changes, since=since, window=window)
        of_one = "--since" if since else None
        form, results = results_of(client, target.reference, changes, of_one)
    show = partial(_show_changes, top=top, since=since)
    show_results(form, results, target.title, show, output=output, json=json)


def _show_changes(result: "Changed", title: str, top: int, since: str | None) -> None:
    out = console()
    earlier = since or f"number {result.since_numbers[-1]}"
    reports = f"{result.n:,} and {counted(result.since_n, 'report')}"
    out.print(f"{title} since {plain(earlier)}: {reports}")
    print_question(out, result.question)
    for name, verdict, numbers in (
        (title, result.verdicts["round"], result.numbers),
        (earlier, result.verdicts["since"], result.since_numbers),
    ):
        print_attack(out, name, verdict)
        print_window(out, result.window, numbers)
    # What is proven comes first.
    shown = sorted(
        largest(abs(result.changes), top).tolist(), key=lambda i: result.words[i] == "not_proven"
    )
    rows = ((isolated(result.items[i]), result.sentence(i)) for i in shown)
    out.print(plain_table("", "", rows=rows))
    if len(result.items) > top:
        out.print(f"… and {len(result.items) - top:,} more items (--top shows more, --json all).")
    condition = "if no report is malicious"
    if result.words_from == "certificate":
        share = percent(result.malicious_share)
        condition = f"if at most {share} of the reports of each side are malicious"
    out.print(f"All intervals hold together with {percent(result.confidence)}, {condition}.")

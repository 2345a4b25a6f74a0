"""`survey`: open a round over a list and print the link of its survey, or one link a ticket."""

import csv
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, TextIO

from typer import Argument, Option

from ldprecover_cli.errors import UsageError, check_new, new_file
from ldprecover_cli.options import (
    DEFAULT_URL,
    Column,
    Encoding,
    Json,
    Key,
    Url,
    Yes,
    confirm_opening,
    connected,
)
from ldprecover_cli.output import console, counted, note, note_items, plain, print_json
from ldprecover_cli.round.open import best_protocol


def survey(
    file: Annotated[
        Path,
        Argument(help="Answers: a text file, one a line, or a CSV or Parquet file."),
    ],
    *,
    question: Annotated[str, Option(help="What the survey asks.", metavar="TEXT")],
    title: Annotated[str | None, Option(help="The survey's title.", metavar="TEXT")] = None,
    thanks: Annotated[
        str | None, Option(help="What the survey says after a report.", metavar="TEXT")
    ] = None,
    name: Annotated[str | None, Option(help="Name of the round.", metavar="NAME")] = None,
    column: Column = None,
    encoding: Encoding = "utf-8",
    users: Annotated[
        int | None,
        Option(help="People that you expect; those with tickets, or 10,000, when absent.", min=1),
    ] = None,
    epsilon: Annotated[
        float, Option(help="Privacy budget of one report, 0.01 to 10; smaller is more private.")
    ] = 1.0,
    tickets: Annotated[
        int | None,
        Option(
            help="Only people with a link of this many may answer, each once.",
            min=1,
            max=1_000_000,
        ),
    ] = None,
    shuffle: Annotated[
        bool, Option("--shuffle", help="Show each person the answers in a random order.")
    ] = False,
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            help="The new CSV file of the links with tickets; links.csv when absent.",
            metavar="FILE",
        ),
    ] = None,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Run a survey of one question whose answers are a list: open its round and print the link.

    First it says how exact the shares will be. On a terminal it asks before it opens a round whose
    noise exceeds the average share. The round cannot be changed later.

    Example: ldprecover survey products.csv --question "Which of these did you buy last?"

    Example: ldprecover survey buy.csv --question "Which?" --column Produkt --encoding cp1252

    Example: ldprecover survey buy.csv --question "Which?" --tickets 5000 --output links.csv
    """
    from ldprecover.planning import accuracy
    from ldprecover_client import load_items
    from ldprecover_client.reporter import MAX_EPSILON

    if output is not None and tickets is None:
        raise UsageError("--output is for the links of --tickets")
    if output is not None and output.suffix != ".csv":
        raise UsageError(f"--output takes a file that ends in .csv, not {output}")
    if epsilon > MAX_EPSILON:
        raise UsageError(
            f"--epsilon: the survey sends no report above {MAX_EPSILON:g}: take that or less, and "
            "more people or fewer items; practice rounds of `ldprecover class` take more"
        )
    links = None if tickets is None else output or Path("links.csv")
    if links is not None:
        check_new(links)
    labels = load_items(file, column, encoding=encoding)
    people = users or tickets or 10_000
    protocol = best_protocol(len(labels), epsilon, people)
    expected = accuracy(len(labels), epsilon, people)
    note_items(labels)
    note(str(expected))
    if expected.drowns and not (yes or json):
        confirm_opening()
    # Create the file first: a round cannot be opened again.
    opened, file_of_links = None, nullcontext() if links is None else new_file(links, 0o600)
    try:
        with connected(url, key) as client, file_of_links as stream:
            opened = client.open_round(
                name=name,
                question=question,
                title=title,
                thanks=thanks,
                protocol=protocol,
                epsilon=epsilon,
                items=labels,
                access="open" if tickets is None else "ticket",
            )
            link = f"{client.url}/page/survey.html?round={opened.name}{'&shuffle' * shuffle}"
            if stream is not None:
                _write_links(stream, link, client.mint_tickets(opened.id, tickets or 0))
    except BaseException:
        if opened is not None:
            note(
                f"{opened.name} is open, but {links} is not written: `ldprecover admin ticket "
                f"{opened.name} --count {tickets}` makes its tickets."
            )
        raise
    if json:
        print_json(opened)
        return
    of_links = f"{counted(tickets or 0, 'link')}, one a person, in {links}: keep the file secret."
    console().print(
        f"{plain(opened.name)} is open.\n"
        f"{of_links if links else f'Survey: {link}'}\n"
        f"To see its results: ldprecover result frequencies {plain(opened.name)} -o results.csv",
        soft_wrap=True,
    )


def _write_links(stream: TextIO, link: str, tickets: Iterable[str]) -> None:
    rows = csv.writer(stream)
    rows.writerow(["link", "ticket"])
    # After the hash: browsers send that part to no server, so no log has the ticket.
    rows.writerows([f"{link}#ticket={ticket}", ticket] for ticket in tickets)

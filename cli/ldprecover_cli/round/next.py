"""`round next`: open the next number of a series."""

from datetime import UTC, datetime
from typing import Annotated

from typer import Argument, Option

from ldprecover_cli.connection import connected
from ldprecover_cli.errors import UsageError
from ldprecover_cli.option_values import closing_time, duration
from ldprecover_cli.options import DEFAULT_URL, Closes, Json, Key, Url
from ldprecover_cli.output import console, note, plain, print_json


def open_next(
    series: Annotated[str, Argument(help="Name of the series.", metavar="SERIES")],
    *,
    number: Annotated[
        int | None, Option(help="The number to open; the one after the last when absent.", min=1)
    ] = None,
    after: Annotated[
        str | None,
        Option(help="Do nothing while the newest round is younger, as 6d.", metavar="TIME"),
    ] = None,
    closes: Closes = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Open the next round or form of a series: close what is open, and ask the same again.

    A number is opened once, so cron may repeat the command. A round that was opened by mistake is
    deleted, while it is empty, and the next has a new number.

    Example: ldprecover round next usage --after 6d
    """
    from ldprecover_client import Form

    age = None if after is None else duration(after)
    if after and (number or age is None):
        raise UsageError("--after takes a time, as 6d, and no --number")
    with connected(url, key) as client:
        if number is None:
            listed = client.series(series)
            newest = listed.entries[0]
            if age and datetime.now(UTC) - datetime.fromisoformat(newest.opened_at) < age:
                note(f"{newest.name} is younger than {after}: nothing is done.")
                if json:
                    print_json(newest)
                return
            number = listed.number + 1
        opened = client.next(series, number, closes_at=closing_time(closes))
    if json:
        print_json(opened)
        return
    kind, first = ("form", opened.rounds[0]) if isinstance(opened, Form) else ("round", opened)
    name = plain(opened.name)
    lines = [f"Number {number} of {plain(series)} is {name}, and {first.state}."]
    if first.access != "key":
        lines.append(f"Survey: {client.url}/page/survey.html?{kind}={name}")
    if first.access == "ticket":
        lines.append(f"To make its tickets: ldprecover admin ticket {name} --count 100")
    console().print("\n".join(lines), soft_wrap=True)

"""`ticket`: mint the tickets of a round."""

from typing import Annotated

import typer
from typer import Option

from ldprecover_cli.options import DEFAULT_URL, Key, RoundArgument, Url, connected

app = typer.Typer(name="ticket", no_args_is_help=True)


@app.callback()
def tickets() -> None:
    """Mint tickets for rounds opened with --access ticket. Each admits one report.

    Example: ldprecover ticket mint cities --count 1000
    """


@app.command("mint")
def mint(
    round: RoundArgument,
    *,
    count: Annotated[int, Option(min=1, max=1_000_000, help="Number of tickets.")],
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Mint tickets and print them, one a line.

    They are shown only once: the server does not store them.

    Example: ldprecover ticket mint cities --count 1000
    """
    with connected(url, key, round=round) as client:
        for ticket in client.mint_tickets(round, count):
            typer.echo(ticket)

"""`admin ticket`: make the tickets of a round."""

from typing import Annotated

import typer
from typer import Option

from ldprecover.sentences import counted
from ldprecover_cli.connection import connected_to, round_or_form
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Key, RoundOrFormArgument, Url
from ldprecover_cli.output import note


def ticket(
    round: RoundOrFormArgument = CURRENT,
    *,
    count: Annotated[int, Option(min=1, max=1_000_000, help="Number of tickets.")],
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Make tickets for a round opened with --access ticket, and print them, one a line.

    Each admits one report; one of a form, to the question that it assigns. They are shown only
    once: the server does not store them.

    Example: ldprecover admin ticket members --count 1000
    """
    with connected_to(round, url, key, scope="admin") as (client, target):
        tickets = round_or_form(
            target.reference,
            lambda reference: client.mint_tickets(reference, count),
            lambda reference: client.mint_form_tickets(reference, count),
        )
        for each in tickets:
            typer.echo(each)
    note(f"{counted(count, 'ticket')} of {target.title}")

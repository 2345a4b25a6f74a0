"""Tickets of simulated users, one a line in a text file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover.sentences import counted
from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cli.option_values import read_lines

if TYPE_CHECKING:
    from ldprecover_client import Form, Round

Tickets = Annotated[
    Path | None,
    Option(
        help="One ticket a line, or the links of `ldprecover survey`: one for each user. Without "
        "--users, every ticket has a user.",
        metavar="FILE",
    ),
]


def read_tickets(file: Path | None) -> tuple[str, ...] | None:
    """Return the tickets of a text file or a table; None without a file.

    Raises UsageError for other text and duplicates.
    """
    from ldprecover_client.calls import TICKET
    from ldprecover_client.tables import open_table

    if file is None:
        return None
    lines = [line.strip() for line in read_lines(file)]
    first = 1
    if lines and not TICKET.fullmatch(lines[0]) and "ticket" in lines[0]:  # a table
        first = 2
        with open_table(file, "ticket") as table:
            position = table.need(("ticket",))
            lines = [str(ticket) for _, (ticket,) in table.rows([position])]
    while lines and not lines[-1]:
        lines.pop()  # editors leave empty lines at the end
    tickets: set[str] = set()
    for line, text in enumerate(lines, first):
        if not TICKET.fullmatch(text):
            raise UsageError(
                f"line {line} of {file} must be a ticket, as `ldprecover admin ticket` prints them"
            )
        if text in tickets:
            raise UsageError(
                f"line {line} of {file} repeats the ticket of an earlier line: each admits one "
                "report"
            )
        tickets.add(text)
    if not tickets:
        raise UsageError(f"{file} contains no ticket")
    return tuple(lines)


def check_enough(tickets: tuple[str, ...] | None, users: int) -> None:
    """Raise UsageError if there are fewer tickets than users."""
    if tickets is not None and len(tickets) < users:
        raise UsageError(f"{counted(users, 'user')} need {users:,} tickets, not {len(tickets):,}")


def check_access(round: "Round | Form", tickets: tuple[str, ...] | None) -> None:
    """Raise UsageError if a round or form needs tickets that are missing, or takes no tickets."""
    from ldprecover_client import Form

    access = round.assign if isinstance(round, Form) else round.access
    if access == "ticket" and tickets is None:
        raise UsageError(
            f"{round.name} accepts only reports with tickets: `ldprecover admin ticket "
            f"{round.name} --count N > FILE` makes some, and --tickets FILE sends one report "
            "under each"
        )
    if access != "ticket" and tickets is not None:
        raise UsageError(f"{round.name} takes no tickets: leave out --tickets")


@contextmanager
def explain_used_keys(tickets: tuple[str, ...] | None) -> Iterator[None]:
    """Translate the error of a reused idempotency key: under a ticket the ticket is the key."""
    from ldprecover_client import RefusedError

    try:
        yield
    except RefusedError as error:
        if error.slug != "idempotency-key-reused":
            raise
        if tickets is not None:
            message = "a ticket of the file has admitted another report: give unused tickets"
        else:
            message = (
                "the round has other reports of this command and seed: repeat a run with the "
                "options that it printed, or give another --seed"
            )
        raise CommandError(message) from error

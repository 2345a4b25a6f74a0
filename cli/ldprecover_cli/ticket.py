"""`ticket`: mint the tickets of a round; and the tickets that a crowd has in a file."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import DEFAULT_URL, Key, RoundArgument, Url, connected
from ldprecover_cli.output import counted

app = typer.Typer(no_args_is_help=True)

Tickets = Annotated[
    Path | None,
    typer.Option(
        help="For a round of tickets: text file with one ticket a line, one for each user. "
        "Without --users, as many "
        "users as tickets.",
        metavar="FILE",
    ),
]


@app.callback()
def tickets() -> None:
    """Mint tickets for rounds that were opened with --access ticket. Each admits one report.

    Example: ldprecover ticket mint cities --count 1000
    """


@app.command("mint")
def mint(
    round: RoundArgument,
    *,
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of tickets.")],
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Mint tickets and print them, one a line, this once: the server does not store them.

    Example: ldprecover ticket mint cities --count 1000
    """
    with connected(url, key, round=round) as client:
        for ticket in client.mint_tickets(round, count):
            typer.echo(ticket)


def tickets_in(file: Path) -> tuple[str, ...]:
    """Return the tickets of a text file, one a line. Raises UsageError for other text, and for one
    twice.
    """
    from ldprecover_client.answers import TICKET

    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} must be a text file") from error
    seen: set[str] = set()
    for line, text in enumerate(lines, 1):
        if not text and not any(lines[line:]):
            break  # empty lines at the end, as editors leave them
        if not TICKET.fullmatch(text):
            raise UsageError(
                f"line {line} of {file} must be a ticket, as `ldprecover ticket mint` prints them"
            )
        if text in seen:
            raise UsageError(
                f"line {line} of {file} is a ticket that an earlier line has: each admits one "
                "report"
            )
        seen.add(text)
    if not seen:
        raise UsageError(f"{file} holds no ticket")
    return tuple(lines[: len(seen)])


def enough_tickets(tickets: tuple[str, ...] | None, users: int) -> None:
    """Raise UsageError where each of the users needs a ticket, and there are fewer."""
    if tickets is not None and len(tickets) < users:
        raise UsageError(
            f"{counted(users, 'user')} need as many tickets, and there are {len(tickets):,}"
        )


def remembered(file: Path | None, tickets: tuple[str, ...] | None) -> dict[str, str] | None:
    """Return what an interrupted run must know to go on under the same tickets: they are not
    written down again.
    """
    return (
        None
        if file is None or tickets is None
        else {"file": str(file.absolute()), "digest": _digest(tickets)}
    )


def tickets_again(known: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """Return the tickets of a run that goes on.

    Raises UsageError where the file has others: reports would count twice.
    """
    if known is None:
        return None
    tickets = tickets_in(Path(known["file"]))
    if _digest(tickets) != known["digest"]:
        raise UsageError(
            f"{known['file']} no longer holds the tickets that the interrupted run was begun with"
        )
    return tickets


def _digest(tickets: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(tickets).encode()).hexdigest()

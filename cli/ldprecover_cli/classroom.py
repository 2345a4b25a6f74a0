"""`class`: a practice round that phones on the local network answer."""

from ipaddress import IPv4Address
from pathlib import Path
from shlex import quote
from typing import Annotated

from typer import Argument, Option

from ldprecover_cli.errors import UsageError, check_new
from ldprecover_cli.options import AsIs, Column, Encoding, Epsilon, Question
from ldprecover_cli.output import note, note_items
from ldprecover_cli.round.open import best_protocol
from ldprecover_cli.signals import end_on_signals

_QUESTION = "How did you come here today?"
_ANSWERS = ("on foot", "by bicycle", "by bus or train", "by car", "in another way")


def classroom(
    file: Annotated[
        Path | None,
        Argument(help="Answers: a text file, one a line, or a CSV or Parquet file."),
    ] = None,
    *,
    question: Question = None,
    column: Column = None,
    encoding: Encoding = "utf-8",
    as_is: AsIs = False,
    users: Annotated[int, Option(help="People that you expect.", min=1)] = 30,
    epsilon: Epsilon = 4.0,
    host: Annotated[
        str | None,
        Option(
            help="IPv4 address of this machine on the network of the phones; found when absent.",
            metavar="ADDRESS",
        ),
    ] = None,
    port: Annotated[int, Option(help="TCP port; 0 takes a free one.", min=0, max=65535)] = 8000,
    keep: Annotated[
        Path | None, Option(help="The new SQLite file in which the round is kept.", metavar="FILE")
    ] = None,
) -> None:
    """Ask a class with phones, attack the round and recover it, on the local network.

    It opens a practice round and serves it until Ctrl-C: phones answer the survey over plain http,
    the teacher's page counts, attacks and recovers, on this machine alone. Nothing is kept unless
    --keep names a file. Without FILE it asks how people came.

    Example: ldprecover class

    Example: ldprecover class fruit.txt --question "Which of these do you like best?" --users 25
    """
    from ldprecover.planning import accuracy
    from ldprecover.rounds.parameters import RoundParameters, check_texts
    from ldprecover_cli.practice.lesson import Lesson
    from ldprecover_cli.practice.network import CLASS, network_address
    from ldprecover_cli.practice.server import practice_server
    from ldprecover_cli.serve import server_errors
    from ldprecover_client import load_items
    from ldprecover_interface.rounds import NewRound

    items: tuple[str, ...] = _ANSWERS
    if file is not None:
        items = load_items(file, column, encoding=encoding, as_is=as_is)
    if (file is None) != (question is None):
        raise UsageError("give a file of answers and --question, or neither")
    if keep is not None:
        check_new(keep)
    protocol = best_protocol(len(items), epsilon, users)
    RoundParameters(protocol, epsilon, items)  # raises before anything is printed
    check_texts({"question": question})
    new = NewRound(
        name=CLASS,
        practice=True,
        question=_QUESTION if question is None else question,
        items=list(items),
        protocol=protocol,
        epsilon=epsilon,
    )
    address = network_address() if host is None else _checked(host)
    note_items(items)
    note(str(accuracy(len(items), epsilon, users)))
    with (
        server_errors(),
        end_on_signals(),
        practice_server(CLASS, practice=True, database=keep, address=address, port=port) as server,
    ):
        lesson = Lesson(server, new)
        if address is None:
            why = "No network was found: only" if host is None else "Only"
            note(f"{why} this machine can answer. --host names its address on a network.")
        try:
            server.wait(f"Students: {lesson.students}", f"Teacher: {server.link} until Ctrl-C")
        finally:
            lesson.close()
    if keep is None:
        note("Nothing was kept.")
    else:
        note(f"The round is in {keep}.")
        note(f"To look at it: ldprecover serve --database-url {quote(f'sqlite:///{keep}')}")


def _checked(host: str) -> str | None:
    """Return the address; None for one of this machine alone."""
    try:
        address = IPv4Address(host)
    except ValueError:
        raise UsageError(f"--host must be an IPv4 address, not {host!r}") from None
    if address.is_unspecified:
        raise UsageError("--host must be one address: phones are shown it")
    return None if address.is_loopback else host

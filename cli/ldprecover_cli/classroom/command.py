"""`class`: a practice round that phones on the local network answer."""

from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path
from shlex import quote
from typing import Annotated

from typer import Argument, Option

from ldprecover_cli.errors import CommandError, UsageError, check_new
from ldprecover_cli.options import Column, Encoding, Epsilon, Question
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
    from ldprecover_cli.classroom.server import class_server, network_address
    from ldprecover_cli.local_server import serve_until_interrupted, temporary_folder
    from ldprecover_client import ClientError, load_items

    items = _ANSWERS if file is None else load_items(file, column, encoding=encoding)
    if (file is None) != (question is None):
        raise UsageError("give a file of answers and --question, or neither")
    if keep is not None:
        check_new(keep)
    protocol = best_protocol(len(items), epsilon, users)
    RoundParameters(protocol, epsilon, items)  # raises before anything is printed
    address = network_address() if host is None else _checked(host)
    round = {
        "question": _QUESTION if question is None else question,
        "items": items,
        "protocol": protocol,
        "epsilon": epsilon,
    }
    check_texts({"question": question})
    note_items(items)
    note(str(accuracy(len(items), epsilon, users)))
    with end_on_signals(), ExitStack() as stack:
        database = keep or stack.enter_context(temporary_folder()) / "class.db"
        server = stack.enter_context(class_server(database, address, port, round))
        if address is None:
            why = "No network was found: only" if host is None else "Only"
            note(f"{why} this machine can answer. --host names its address on a network.")
        lines = f"Students: {server.students}", f"Teacher: {server.link} until Ctrl-C"
        failure = None
        try:
            serve_until_interrupted(server.running, server.link, *lines)
        finally:
            if keep is not None:
                try:
                    server.close_round()
                except ClientError as error:
                    failure = error
    if keep is None:
        note("Nothing was kept.")
        return
    others = [f"{keep}{end}" for end in ("-wal", "-shm") if Path(f"{keep}{end}").exists()]
    note(f"The round is in {' and '.join(map(str, [keep, *others]))}.")
    if failure is not None:
        raise CommandError(f"the round could not be closed, and is still open there: {failure}")
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

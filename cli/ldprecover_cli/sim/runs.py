"""Runs of simulated users: seed, journal, and resuming after an interruption."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cli.options import CURRENT, DEFAULT_URL, connected, quick_retries
from ldprecover_cli.output import note
from ldprecover_cli.signals import end_on_signals
from ldprecover_cli.sim.ticket_files import explain_used_tickets, read_again

if TYPE_CHECKING:
    from ldprecover_client import Client, Journal, RefusedError, Retries

Resume = Annotated[
    bool, Option("--resume", help="Resume an interrupted run. No report counts twice.")
]
RunSeed = Annotated[
    int | None,
    Option(
        "--seed", min=0, help="Seed of all random numbers, to repeat a run; random when absent."
    ),
]
Users = Annotated[int | None, Option(min=1, help="Number of simulated users.")]
Wait = Annotated[bool, Option("--wait", help="Wait until a server that does not answer is back.")]

_UNLIMITED = 1 << 62  # attempts, and seconds
_PERMANENT = (409, 410, 413, 422)  # status codes of errors that a retry repeats


def chosen_seed(seed: int | None) -> int:
    """Return the seed, or a random one: the same reports sent twice would count as evidence."""
    return secrets.randbelow(1 << 32) if seed is None else seed


def _persistence(wait: bool) -> "Retries":
    """Return retries for seconds; with `wait`, retries until the server answers."""
    if not wait:
        return quick_retries()
    from ldprecover_client import Retries

    notified = False

    def on_wait(seconds: float) -> None:
        nonlocal notified
        if not notified:
            notified = True
            note("The server accepts no reports now. Waiting until it does; Ctrl-C ends this.")

    return Retries(
        attempts=_UNLIMITED, base=0.2, longest=5.0, total=float(_UNLIMITED), on_wait=on_wait
    )


def new_journal(command: str, round: str, options: Mapping[str, Any]) -> "Journal":
    """Return the journal of a new run; `options` and the round must determine its reports."""
    from ldprecover_client.journal import Journal, runs_folder

    facts = {"command": command, "round": round, "options": dict(options)}
    return Journal(runs_folder() / f"{command}-{secrets.token_hex(8)}.jsonl", facts)


def interrupted(
    command: str, round: str, url: str, options: Mapping[str, Any]
) -> "tuple[Journal, tuple[str, ...] | None, str]":
    """Return the latest interrupted run, of `round` unless it is "current".

    The result is its journal, its tickets and its URL; a URL other than the default wins. Runs on
    the server with this URL have precedence. Raises UsageError if there is no such run, an option
    would change its reports, or its tickets have changed.
    """
    from ldprecover_client.journal import Journal, runs_folder

    changing = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if changing:
        raise UsageError(
            f"--resume continues a run with its own options: leave out {', '.join(changing)}"
        )
    files = sorted(
        runs_folder().glob(f"{command}-*.jsonl"),
        key=lambda path: path.stat().st_mtime,
        reverse=True,
    )
    for journal in sorted(
        map(Journal.open, files), key=lambda journal: journal.facts["url"] != url.rstrip("/")
    ):
        if round in (CURRENT, journal.facts["round"], journal.facts["name"]):
            tickets = read_again(journal.facts["options"].get("tickets"))
            return journal, tickets, journal.facts["url"] if url == DEFAULT_URL else url
    place = "" if round == CURRENT else f" in round {round}"
    raise UsageError(f"there is no interrupted run of `ldprecover sim {command}`{place}")


@contextmanager
def sending(
    journal: "Journal", url: str, *, key: str | None, tickets: tuple[str, ...] | None, wait: bool
) -> Iterator["tuple[Client, dict[str, Any]]"]:
    """Yield a client for a run, and the options of `submit_reports` that deliver its reports.

    Without a key a submission has one report, as an open round takes them. Signals end the run
    cleanly. The journal is removed as `_removing_journal` says.
    """
    from ldprecover_client.bulk import BATCH_SIZE

    round, retries = journal.facts["round"], _persistence(wait)
    delivery = {
        "key": key,
        "tickets": tickets,
        "batch_size": 1 if key is None else BATCH_SIZE,
        "journal": journal,
        "retries": retries,
    }
    with (
        end_on_signals(),
        explain_used_tickets(tickets),
        connected(url, key, scope="report", round=round, retries=retries) as client,
        _removing_journal(journal),
    ):
        yield client, delivery


@contextmanager
def _removing_journal(journal: "Journal") -> Iterator[None]:
    """Remove the journal when the run is complete, or can never be; otherwise note --resume.

    The note is on the error that interrupts the run. Raises CommandError if the server lacks the
    round of a resumed run.
    """
    from ldprecover_client import RefusedError

    resumed = journal.path.exists()
    try:
        yield
    except BaseException as error:
        if resumed and isinstance(error, RefusedError) and error.slug == "round-not-found":
            raise CommandError(
                f"this server lacks the round {journal.facts['name']} of the interrupted run, "
                f"which is on {journal.facts['url']}: name that server with --url, or remove "
                f"{journal.path} to discard the run"
            ) from error
        if isinstance(error, RefusedError) and _is_permanent(error, journal):
            journal.remove()
        elif journal.path.exists():
            discard = f"; removing {journal.path} discards the run" if resumed else ""
            command = journal.facts["command"]
            error.add_note(f"`ldprecover sim {command} --resume` sends the rest{discard}")
        raise
    journal.remove()


def _is_permanent(error: "RefusedError", journal: "Journal") -> bool:
    """Return whether resuming is pointless: the round is closed, or has none of these reports."""
    if error.status in _PERMANENT or error.slug == "round-not-found":
        return True
    return not error.in_doubt and not journal.has_accepted

"""A run of many simulated users: its seed, its journal, and how it goes on after an
interruption.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cli.options import DEFAULT_URL, quick_retries
from ldprecover_cli.output import note

if TYPE_CHECKING:
    from ldprecover_client import Journal, RefusedError, Retries

Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with a run that was interrupted. No report counts twice."),
]
RunSeed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, help="Seed of all that is random here, to repeat a run. Drawn when absent."
    ),
]
Users = Annotated[int | None, typer.Option(min=1, help="Number of simulated users.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait for a server that does not answer until it is back.")
]

_CONSTANTLY = 1 << 62  # attempts, and more seconds than anybody waits
_FOR_GOOD = (409, 410, 413, 422)


def drawn_seed() -> int:
    """Return a seed that no other run has: the same reports sent twice would look like more
    evidence than they are.
    """
    return secrets.randbelow(1 << 32)


def persistence(wait: bool) -> "Retries":
    """Return the retries of a run: the quick ones, or those that end when the server answers."""
    if not wait:
        return quick_retries()
    from ldprecover_client import Retries

    told = False

    def tell(seconds: float) -> None:
        nonlocal told
        if not told:
            told = True
            note("The server takes no reports now. Waiting until it does; Ctrl-C ends this.")

    return Retries(
        attempts=_CONSTANTLY, base=0.2, longest=5.0, total=float(_CONSTANTLY), on_wait=tell
    )


def new_journal(command: str, options: Mapping[str, Any]) -> "Journal":
    """Return the journal of a new run; with its round, `options` must be all that makes the same
    reports again.
    """
    from ldprecover_client.journal import Journal, runs_folder

    facts = {"command": command, "options": dict(options)}
    return Journal(runs_folder() / f"{command}-{secrets.token_hex(8)}.jsonl", facts)


def interrupted(command: str, round: str, url: str, given: Mapping[str, Any]) -> "Journal":
    """Return the journal of the run that was interrupted last, of this round unless it is
    "current".

    Runs on the server with this URL come before others.

    Raises UsageError where there is none, and where an option would change what is sent.
    """
    from ldprecover_client.journal import Journal, runs_folder

    changing = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if changing:
        raise UsageError(
            f"--resume goes on with a run as it was begun: leave out {', '.join(changing)}"
        )
    files = sorted(
        runs_folder().glob(f"{command}-*.jsonl"),
        key=lambda path: path.stat().st_mtime,
        reverse=True,
    )
    for journal in sorted(
        map(Journal.open, files), key=lambda journal: journal.facts["url"] != url.rstrip("/")
    ):
        if round in ("current", journal.facts["round"], journal.facts["name"]):
            return journal
    where = "" if round == "current" else f" in round {round}"
    raise UsageError(f"no interrupted run of `ldprecover {command}`{where} is left to go on with")


def run_location(journal: "Journal", url: str) -> tuple[str, str]:
    """Return URL and round of an interrupted run; a URL other than the default wins."""
    return journal.facts["url"] if url == DEFAULT_URL else url, journal.facts["round"]


@contextmanager
def going_on(journal: "Journal", command: str) -> Iterator[None]:
    """Remove the journal once everything is sent, or can never be; else note on the error how to go
    on.

    Raises CommandError where the server has not the round of a run that goes on.
    """
    from ldprecover_client import RefusedError

    goes_on = journal.path.exists()
    try:
        yield
    except BaseException as error:
        if goes_on and isinstance(error, RefusedError) and error.slug == "round-not-found":
            raise CommandError(
                f"the interrupted run reports to the round {journal.facts['name']} of "
                f"{journal.facts['url']}, and this "
                f"server has no such round: --url names the one that has; removing {journal.path} "
                "drops the run"
            ) from error
        if isinstance(error, RefusedError) and _is_for_good(error, journal):
            journal.remove()
        elif journal.path.exists():
            drops = f", and removing {journal.path} drops the run" if goes_on else ""
            error.add_note(f"`ldprecover {command} --resume` sends the rest{drops}")
        raise
    journal.remove()


def _is_for_good(error: "RefusedError", journal: "Journal") -> bool:
    """Return whether nothing is left to go on with: the round takes no more, or it has none of
    these reports.
    """
    if error.status in _FOR_GOOD or error.slug == "round-not-found":
        return True
    return not error.in_doubt and not journal.has_accepted

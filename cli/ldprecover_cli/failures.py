"""From what went wrong to one line for the person at the keyboard, and the exit code.

1    the server, the network, the ledger or a limit said no
2    what was asked for cannot be done: an option outside its range, a file that cannot be read
130  Ctrl-C
"""

from collections.abc import Sequence
from difflib import get_close_matches

__all__ = ["CommandError", "UsageError", "check_items", "close_to", "explain"]

_SLUG_HINTS = {
    "forbidden": "`ldprecover key create --scope` makes another key",
    "invalid-ticket": "give a ticket of this round with --ticket; `ldprecover ticket mint` makes them",
    "name-taken": "choose another, or see `ldprecover round list`",
    "no-current-round": "open one with `ldprecover round open`",
    "no-reports": "`ldprecover simulate` makes some",
    "round-closed": "open another with `ldprecover round open`",
    "round-not-found": "`ldprecover round list` shows the rounds there are",
    "report-key-needed": "give one with --key; `ldprecover key create --scope report` makes one",
    "unauthorized": "give a key of the server with --key or LDPRECOVER_ADMIN_KEY",
}


class CommandError(Exception):
    """Something went wrong and the text says all: one line, and the command ends with `exit_code`."""

    exit_code = 1


class UsageError(CommandError):
    """What was asked for cannot be done."""

    exit_code = 2


def explain(error: Exception) -> tuple[str, int] | None:
    """Return the line and the exit code for an error of this project or the system; None for a fault of ours."""
    from ldprecover.errors import LDPRecoverError, ReportError
    from ldprecover_client.errors import AlreadyReportedError, CallerError, ClientError

    if isinstance(error, CommandError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        return str(error), 1
    if isinstance(error, ReportError) or not isinstance(error, ClientError | LDPRecoverError):
        return None
    usage = isinstance(error, CallerError | LDPRecoverError) and not isinstance(error, AlreadyReportedError)
    hint = _hint(error)
    return f"{error}; {hint}" if hint else str(error), 2 if usage else 1


def close_to(wanted: str, known: Sequence[str]) -> str:
    """Return the known names that are most like a wanted one, in words; empty where none is."""
    folded = {name.casefold(): name for name in reversed(known)}
    found = get_close_matches(wanted.casefold(), folded, n=3, cutoff=0.6)
    found += [name for name in folded if wanted.casefold() in name and name not in found][: 3 - len(found)]
    return f"did you mean {' or '.join(repr(folded[name]) for name in found)}?" if found else ""


def check_items(wanted: Sequence[str], items: Sequence[str]) -> None:
    """Raise UsageError, naming what is like it, for the first wanted label that no item of a round has."""
    known = set(items)
    for label in wanted:
        if label not in known:
            near = close_to(label, items) or "`ldprecover round show --json` has them all"
            raise UsageError(f"no item of the round is called {label!r}; {near}")


def _hint(error: Exception) -> str:
    from ldprecover_client.errors import (
        EpsilonSpentError,
        EpsilonTooHighError,
        InvalidAnswerError,
        RefusedError,
        UnansweredError,
    )

    if isinstance(error, RefusedError):
        return _SLUG_HINTS.get(error.slug, "")
    if isinstance(error, UnansweredError) and error.status is None:
        return "start a server with `ldprecover serve`, or name yours with --url or LDPRECOVER_URL"
    if isinstance(error, InvalidAnswerError):
        return "check --url"
    if isinstance(error, EpsilonTooHighError):
        return "--max-epsilon raises the limit"
    if isinstance(error, EpsilonSpentError):
        return "--max-total-epsilon raises the limit"
    return ""

"""From what went wrong to one line for the person at the keyboard, and the exit code.

1    the server, the network, the ledger or a limit said no
2    what was asked for cannot be done: an option outside its range, a file that cannot be read
130  Ctrl-C

With 1, and without a word, a command also ends when nobody reads what it writes, as before `|
head`.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldprecover_client.errors import RefusedError

_SLUG_HINTS = {
    "forbidden": "`ldprecover key create --scope` makes another key",
    "invalid-ticket": "give a ticket of this round with --ticket; `ldprecover ticket mint` makes "
    "them",
    "name-taken": "choose another, or see `ldprecover round list`",
    "not-found": "check --url, which is the server's address and nothing behind it",
    "no-current-round": "open one with `ldprecover round open`",
    "no-reports": "`ldprecover simulate` makes some",
    "round-closed": "open another with `ldprecover round open`",
    "round-not-found": "`ldprecover round list` shows the rounds there are",
    "report-key-needed": "give one with --key; `ldprecover key create --scope report` makes one",
    "unauthorized": "give a key of the server with --key or LDPRECOVER_ADMIN_KEY",
}


_USAGE_SLUGS = {"invalid-parameter", "invalid-request"}
"""Problems of what was asked for, not of the round's or the server's state."""

_OPTIONS = {
    "access": "--access",
    "against": "--against",
    "attackers": "--attackers",
    "beta": "--beta",
    "by_name": "--by-name",
    "domain_size": "--domain-size",
    "drift": "--drift",
    "error": "--error",
    "frequency": "--frequency",
    "gain": "--gain",
    "sum_of": "--sum-of",
    "users": "--users",
    "each": "--each",
    "epsilon": "--epsilon",
    "eta": "--eta",
    "given_seeds": "--given-seeds",
    "hash_range": "--hash-range",
    "subset_size": "--subset-size",
    "item": "--item",
    "items": "the items",
    "kind": "--kind",
    "malicious_model": "--malicious-model",
    "max_epsilon": "--max-epsilon",
    "max_total_epsilon": "--max-total-epsilon",
    "method": "--method",
    "model": "--model",
    "name": "NAME",
    "options": "--option",
    "protocol": "--protocol",
    "rate": "--rate",
    "read_access": "--read-access",
    "retention": "--retention",
    "scheduler": "--scheduler",
    "search": "--search",
    "series": "--series",
    "size": "--size",
    "support": "--support",
    "targets": "--target",
}
"""What a person gave, by the name that the interface and the mathematics have for it."""

_NAME = (
    "must be 1 to 64 small letters, digits, dots, underscores and hyphens, a letter or digit first"
)
_FORMS = {
    "name": _NAME,
    "retention": "must be forever, none, or hours or days, as 36h or 7d",
    "series": _NAME,
}
"""What the interface states as a pattern, in words."""

_PHRASES = (
    (r"\b(Input|List|String|Value) should ", "must "),
    (r" after validation\b", ""),
    (r"\bgreater than or equal to\b", "at least"),
    (r"\bless than or equal to\b", "at most"),
    (r"\bgreater than\b", "above"),
    (r"\bless than\b", "below"),
    (r"\ba valid integer(, unable to .*?)?(?=$| \(| or )", "an integer"),
    (r"\ba valid number(, unable to .*?)?(?=$| \(| or )", "a number"),
    (r"\bValue error, ", ""),
    (r"\bbe an array of length (at least|at most) (\d+)", r"have \1 \2 items"),
    (r"\bbe a string of length (at least|at most) (\d+)", r"have \1 \2 characters"),
)


class CommandError(Exception):
    """Something went wrong and the text says all: one line, and the command ends with
    `exit_code`.
    """

    exit_code = 1


class UsageError(CommandError):
    """What was asked for cannot be done."""

    exit_code = 2


def explain(error: Exception) -> tuple[str, int] | None:
    """Return the line and the exit code for an error of this project or the system; None for a
    fault of ours.
    """
    from ldprecover.errors import ContractError, LDPRecoverError, ReportError
    from ldprecover_client.errors import (
        AlreadyReportedError,
        CallerError,
        ClientError,
        RefusedError,
    )
    from ldprecover_cluster.errors import EngineError, ReportDatasetError
    from ldprecover_experiments.errors import ExperimentError

    if isinstance(error, CommandError):
        return with_notes(str(error), error.__cause__), error.exit_code
    if isinstance(error, ExperimentError | ContractError | EngineError | ReportDatasetError):
        return str(error), 1
    if isinstance(error, OSError):
        named = f"{error.filename}: " if error.filename is not None else ""
        return f"{named}{error.strerror or error}", 1
    if isinstance(error, ReportError) or not isinstance(error, ClientError | LDPRecoverError):
        return None
    if isinstance(error, RefusedError) and error.slug in _USAGE_SLUGS:
        return _what_is_asked(error), 2
    usage = isinstance(error, CallerError | LDPRecoverError) and not isinstance(
        error, AlreadyReportedError
    )
    said = with_notes(_with_option(str(error)) if usage else str(error), error)
    hint = _hint(error)
    return f"{said}; {hint}" if hint else said, 2 if usage else 1


def blamed(error: BaseException) -> str:
    """Return whose fault an error is that nobody expected: a plugin's, where it came through one,
    or ours.
    """
    from ldprecover.plugins import plugin_at_fault

    return f"a fault of {plugin_at_fault(error) or 'ldprecover'}"


def reworded(reason: str) -> str:
    """Return what a checker of types says of a value, as a person would say it."""
    for pattern, words in _PHRASES:
        reason = re.sub(pattern, words, reason)
    return reason


def with_notes(said: str, error: BaseException | None) -> str:
    """Return a line with what was noted on its error: how many reports had been accepted
    before it.
    """
    notes = getattr(error, "__notes__", ())
    return f"{said} ({'; '.join(notes)})" if notes else said


def _what_is_asked(error: "RefusedError") -> str:
    """Return in one line which options a server refuses, and why."""
    said: dict[str, str] = {}
    for field, reason in error.fields[:3]:
        name, _, rest = field.partition(".")
        where = _OPTIONS.get(name, name) + (f": item {int(rest) + 1}" if rest.isdecimal() else "")
        if field == "items" and re.search(r"\bof length at\b", reason):
            where = "a round"  # has at least so many items
        why = (
            _FORMS[name]
            if name in _FORMS and re.search(r"\bmatch(es)?\b", reason)
            else reworded(reason)
        )
        # What may be one thing or another has a reason for each.
        said[where] = f"{said[where]}, or {why}" if where in said else f"{where} {why}"
    return "; ".join(said.values()) or _with_option(error.detail or error.title)


def _with_option(said: str) -> str:
    """Return a sentence that begins with a parameter's name, such as "hash_range must", with its
    option instead.
    """
    found = re.match(r"[a-z_]+(?=:? )", said)
    return _OPTIONS[found[0]] + said[found.end() :] if found and found[0] in _OPTIONS else said


def close_to(wanted: str, known: Sequence[str]) -> str:
    """Return the known names that are most like a wanted one, in words; empty where none is."""
    folded = {name.casefold(): name for name in reversed(known)}
    found = get_close_matches(wanted.casefold(), folded, n=3, cutoff=0.6)
    found += [name for name in folded if wanted.casefold() in name and name not in found][
        : 3 - len(found)
    ]
    return f"did you mean {' or '.join(repr(folded[name]) for name in found)}?" if found else ""


def check_items(wanted: Sequence[str], items: Sequence[str]) -> None:
    """Raise UsageError, naming what is like it, for the first wanted label that no item of a round
    has.
    """
    known = set(items)
    for label in wanted:
        if label not in known:
            near = close_to(label, items) or "`ldprecover round show --json` has them all"
            raise UsageError(f"no item of the round is called {label!r}; {near}")


def _hint(error: Exception) -> str:
    from ldprecover_client.errors import (
        AccessError,
        EpsilonSpentError,
        EpsilonTooHighError,
        InvalidAnswerError,
        RefusedError,
        UnansweredError,
    )

    if isinstance(error, RefusedError):
        needs_key = error.slug == "body-too-large" and "report key" in (error.detail or "")
        return _SLUG_HINTS.get("report-key-needed" if needs_key else error.slug, "")
    if isinstance(error, UnansweredError) and error.status is None:
        if _comes_of(error, "ssl", "SSLError"):
            return _HINT_OF_TLS
        return (
            _HINT_OF_SLOW
            if _comes_of(error, "httpx", "ReadTimeout", "WriteTimeout")
            else _HINT_OF_NO_ANSWER
        )
    if isinstance(error, InvalidAnswerError):
        return "check --url"
    if isinstance(error, AccessError):
        return _HINTS_OF_ACCESS.get(error.needs, "")
    if isinstance(error, EpsilonTooHighError):
        return "--max-epsilon raises the limit, and what your report may tell of you"
    if isinstance(error, EpsilonSpentError):
        return (
            "leave this round out, or raise the limit with --max-total-epsilon, and what all "
            "rounds may tell of you"
        )
    return ""


_HINTS_OF_ACCESS: dict[str | None, str] = {
    "key": "--key or LDPRECOVER_KEY gives one, and `ldprecover key create --scope report` makes "
    "one",
    "ticket": "--ticket gives one, and `ldprecover ticket mint` makes them",
}
_HINT_OF_NO_ANSWER = (
    "start a server with `ldprecover serve`, or name yours with --url or LDPRECOVER_URL"
)
_HINT_OF_SLOW = (
    "the server is there, but it or the network is slow: "
    "`ldprecover recover --background` waits for a recovery that takes long"
)
_HINT_OF_TLS = (
    "a server without TLS has a URL with http://; one with it needs a certificate that "
    "this machine trusts"
)


def _comes_of(error: BaseException | None, module: str, *names: str) -> bool:
    from importlib import import_module

    kinds = tuple(getattr(import_module(module), name) for name in names)
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False

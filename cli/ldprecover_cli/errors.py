"""Turns an exception into one line for the person at the terminal, and an exit code.

1    the server, the network, the ledger or a limit rejected the request
2    the request is invalid: an option outside its range, a file that cannot be read
130  Ctrl-C
141  nobody reads the output, as before `| head`; without a message
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ldprecover.items import label_indices, quoted

if TYPE_CHECKING:
    from ldprecover_client.errors import RefusedError

_HINTS = {
    "certificate": "SSL_CERT_FILE names a file of authorities to trust",
    "forbidden": "`ldprecover admin key create --scope` makes another key",
    "gateway": "a proxy before the server stopped waiting: raise its timeout; with an analyst or "
    "admin key a running analysis continues, and the same command again shows its result",
    "host-not-allowed": "its operator adds the name to LDPRECOVER_ALLOWED_HOSTS, or has the proxy "
    "pass the Host header on",
    "invalid-ticket": "give a ticket of this round with --ticket; `ldprecover admin ticket` makes "
    "them",
    "name-taken": "choose another, or see `ldprecover round list`",
    "not-comparable": "--since names another earlier round",
    "not-next": "`ldprecover round next` opens it",
    "not-found": "check --url: it must be the address of the server's page",
    "no-reports": "`ldprecover sim users` makes some",
    "round-of-form": "name the form instead",
    "round-closed": "open another with `ldprecover round open`",
    "round-not-found": "`ldprecover round list` shows all, `ldprecover round open` opens one",
    "round-open": "`ldprecover round close` closes it",
    "proxy": "this is the answer of the proxy that HTTPS_PROXY or ALL_PROXY names",
    "report-key-needed": "give a report key with --key; `ldprecover admin key create --scope "
    "report` makes one",
    "unauthorized": "give a key of the server with --key or LDPRECOVER_ADMIN_KEY",
    "EpsilonTooHighError": "--max-epsilon raises the limit, and how much your report may reveal "
    "about you",
    "EpsilonSpentError": "skip this round, or raise the limit with --max-total-epsilon, and how "
    "much all rounds may reveal about you",
    "key": "--key or LDPRECOVER_KEY gives one, and `ldprecover admin key create --scope report` "
    "makes one",
    "ticket": "--ticket gives one, and `ldprecover admin ticket` makes them",
    "silent": "start a server with `ldprecover serve`, or name yours with --url or LDPRECOVER_URL",
    "slow": "the server answers, but it or the network is slow; with an analyst or admin key a "
    "running analysis continues, and the same command again shows its result",
    "tls": "use http:// for a server without TLS",
}
"""Hints by the problem that a server states, or by the client's error."""

_USAGE_SLUGS = {"invalid-parameter", "invalid-request"}
"""Problems of the request, not of the round's or the server's state."""

_FIELD_HINTS = dict.fromkeys(
    ("method", "protocol"),
    " (a plugin's needs a server whose LDPRECOVER_PLUGINS names the plugin)",
)
_SHOWN_FIELDS = 3
_OPTIONS = {"beta": "--malicious-share", "items": "--item", "closes_at": "--closes"}
"""Options whose field has another name."""


class CommandError(Exception):
    """An error whose text is the whole message; the command ends with `exit_code`."""

    exit_code = 1


class UsageError(CommandError):
    """The request is invalid."""

    exit_code = 2


@contextmanager
def file_errors(action: str, file: Path) -> Iterator[None]:
    """Turn an OSError into a UsageError that says why the command cannot read or write a file."""
    try:
        yield
    except OSError as error:
        if file.is_dir() and error.filename:
            file = Path(error.filename)
        is_folder = file.is_dir() and isinstance(error, IsADirectoryError | FileExistsError)
        reason = "it is a folder" if is_folder else error.strerror or "it exists"
        if isinstance(error, FileExistsError) and file.is_file():
            reason = "a file of this name exists; delete it, or give another name"
        raise UsageError(f"cannot {action} {file}: {reason}") from error


@contextmanager
def new_file(file: Path, permissions: int = 0o666) -> Iterator[TextIO]:
    """Yield a new file for text in UTF-8, which has its name only after the block."""
    from ldprecover_client.whole_files import whole_file

    with (
        file_errors("write", file),
        whole_file(file, permissions) as partial,
        partial.open("w", encoding="utf-8", newline="") as stream,
    ):
        yield stream


def check_new(file: Path) -> None:
    """Raise UsageError if there is a file of this name already, or no folder for it."""
    if file.exists():
        with file_errors("write", file):
            raise FileExistsError
    if not file.parent.is_dir():
        raise UsageError(f"cannot write {file}: there is no folder {file.parent}")
    if not os.access(file.parent, os.W_OK):
        raise UsageError(f"cannot write {file}: its folder takes no files of yours")


def explain(error: Exception, arguments: Sequence[str] = ()) -> tuple[str, int] | None:
    """Return the line and the exit code for an error; None for one that nobody expected.

    `arguments` are those of the command: an option among them replaces the field in the line.
    """
    from ldprecover.errors import LDPRecoverError, ReportError
    from ldprecover_client.errors import (
        AlreadyReportedError,
        CallerError,
        ClientError,
        RefusedError,
    )
    from ldprecover_experiments.errors import ExperimentError

    if isinstance(error, MemoryError):
        fault = f"memory is short: {error}" if str(error) else "memory is short"
        return f"{fault}; take fewer users, items or processes", 1
    if isinstance(error, CommandError):
        return with_notes(str(error), error.__cause__), error.exit_code
    if isinstance(error, ExperimentError):
        return with_notes(str(error), error), 1
    if isinstance(error, OSError):
        file = f"{error.filename}: " if error.filename is not None else ""
        return f"{file}{error.strerror or error}", 1
    if isinstance(error, ReportError) or not isinstance(error, LDPRecoverError):
        return None
    if isinstance(error, RefusedError) and error.slug in _USAGE_SLUGS:
        return _with_option(_rejected_fields(error), arguments), 2
    usage = not isinstance(error, AlreadyReportedError) and (
        isinstance(error, CallerError) or not isinstance(error, ClientError)
    )
    text = _with_option(with_notes(str(error), error), arguments)
    hint = _hint(error)
    return f"{text}; {hint}" if hint else text, 2 if usage else 1


def with_notes(text: str, error: BaseException | None) -> str:
    """Return a line with the notes of its error, such as the number of accepted reports."""
    notes = getattr(error, "__notes__", ())
    return f"{text} ({'; '.join(notes)})" if notes else text


def _rejected_fields(error: "RefusedError") -> str:
    """Return one line that names the fields the server rejects, each with the reason."""
    lines = []
    for field, reason in error.fields[:_SHOWN_FIELDS]:
        whole, _, name = field.rpartition(".")
        if whole and name.isdecimal():
            name = f"{whole}: item {name}"
        lines.append(f"{name} {reason}{_FIELD_HINTS.get(name, '')}")
    text = error.detail or error.title
    return "; ".join(lines) or text + _FIELD_HINTS.get(text.partition(" must be one of ")[0], "")


def _with_option(text: str, arguments: Sequence[str]) -> str:
    """Return a message that begins with the option, not with its field, if it was given."""
    text = text.removeprefix("questions: ").replace("(targets)", "(--target)")
    text = re.sub(r"(?<![\w'./-])domain_size(?![\w'.])", "--domain-size", text)
    field = text.partition(" ")[0].rstrip(":")
    names = f"--{field.replace('_', '-')}", _OPTIONS.get(field)
    for option in (argument.partition("=")[0] for argument in arguments):
        if option in names:
            return option + text[len(field) :]
    return text


def close_to(name: str, names: Sequence[str]) -> str:
    """Return "did you mean ...?" with the known names most like `name`; empty if none is."""
    folded = {each.casefold(): each for each in reversed(names)}
    matches = get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    parts = [each for each in folded if name.casefold() in each and each not in matches]
    matches += parts[: 3 - len(matches)]
    return (
        f"did you mean {' or '.join(quoted(folded[each]) for each in matches)}?" if matches else ""
    )


def check_items(labels: Sequence[str], items: Sequence[str], round: str | None) -> None:
    """Raise UsageError for the first label that is not an item of the round, with close matches.

    `round` is the name of the round on the server; None for an export.
    """
    source = "its export" if round is None else f"`ldprecover round show {round} --json`"
    index = label_indices(items, labels)
    for label in labels:
        if label not in index:
            near = close_to(label, items) or f"{source} lists all"
            raise UsageError(f"no item of the round is called {quoted(label)}; {near}")


def _hint(error: Exception) -> str:
    from ldprecover_client._httpx import httpx
    from ldprecover_client.errors import RefusedError, UnansweredError

    reason = getattr(error, "needs", None) or type(error).__name__
    if isinstance(error, RefusedError):
        needs_key = error.slug == "body-too-large" and "report key" in (error.detail or "")
        reason = "report-key-needed" if needs_key else error.slug
    elif isinstance(error, UnansweredError) and error.status == HTTPStatus.GATEWAY_TIMEOUT:
        reason = "gateway"
    elif isinstance(error, UnansweredError) and error.status is None:
        reason = "silent"
        if "CERTIFICATE" in str(error):
            reason = "certificate"
        elif "SSL" in str(error):
            reason = "tls"
        elif isinstance(error.__cause__, httpx.ProxyError):
            reason = "proxy"
        elif isinstance(error.__cause__, httpx.ReadTimeout | httpx.WriteTimeout):
            reason = "slow"
    return _HINTS.get(reason, "")

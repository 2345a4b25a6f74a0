"""`report ROUND --html`: a round, its recoveries, alarms and suspects in one file to keep or to
send.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldprecover_cli.errors import UsageError, check_items
from ldprecover_cli.options import connected
from ldprecover_cli.output import note

if TYPE_CHECKING:
    from ldprecover_client import Client

METHODS = ("norm-sub", "ldprecover", "unmix")
"""The recoveries that are made unless others are named."""


def write_report(
    file: Path,
    round: str,
    methods: Sequence[str],
    targets: Sequence[str],
    url: str,
    key: str | None,
) -> None:
    """Write what a server knows of a round into a new HTML file. Raises UsageError, and what the
    client raises.
    """
    from ldprecover_cli.one_file import one_file

    try:
        opened = file.open(
            "x", encoding="utf-8", newline="\n"
        )  # before recoveries, which may take minutes
    except OSError as error:
        raise _unwritten(file, error) from error
    try:
        with opened, connected(url, key, scope="analyst", round=round) as client:
            found = _collected(client, round, methods or METHODS, targets)
            html = one_file("js/report.js", f"{found['round']['name']}: a report", found)
            try:
                opened.write(html)
                opened.flush()
            except OSError as error:
                raise _unwritten(file, error) from error
    except BaseException:  # half a report would stand in the way of the next try
        file.unlink(missing_ok=True)
        raise
    note(f"A report of round {found['round']['name']} is in {file}; any browser shows it.")


def _unwritten(file: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {file}: {error.strerror}")


def _collected(
    client: "Client", round: str, methods: Sequence[str], targets: Sequence[str]
) -> dict[str, Any]:
    status = client.round(round)
    check_items(targets, status.parameters.items)
    id_ = status.id  # another may be the current one by now
    described = {each["name"]: each for each in client.methods(id_)["methods"]}
    for name in methods:
        if name not in described:
            raise UsageError(
                f"--method {name} is none that the server has; `ldprecover methods` lists them"
            )
    frequencies = client.frequencies(id_)
    has_reports = frequencies["n"] > 0
    nothing = (None, "The round has no reports.")
    recoveries = (
        [_recovery(client, id_, described[name], targets) for name in methods]
        if has_reports
        else []
    )
    alarms, no_alarms = _asked(lambda: client.alarms(id_)) if has_reports else nothing
    suspects, no_suspects = _asked(lambda: client.suspects(id_)) if has_reports else nothing
    summary = asdict(status.summary)
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "round": {
            **summary,
            "own": {name: value for name, value in summary["own"].items() if value is not None},
        },
        "frequencies": frequencies,
        "recoveries": [each for each in recoveries if "recovered" in each],
        "refused": [each for each in recoveries if "recovered" not in each],
        "alarms": alarms,
        "no_alarms": no_alarms,
        "suspects": suspects,
        "no_suspects": no_suspects,
    }


def _recovery(
    client: "Client", id_: str, method: dict[str, Any], targets: Sequence[str]
) -> dict[str, Any]:
    """Return what one method makes of the round, or why it makes nothing."""
    name = method["name"]
    note(f"Recovering by {name} …")
    answer, reason = _asked(lambda: client.recover(id_, method=name, targets=list(targets)))
    if answer is None:
        return {"method": name, "reason": reason}
    kept = ("method", "eta", "targets", "recovered", "notes", "conclusions")
    return {
        **{name: answer.get(name) for name in kept},
        "summary": method["summary"],
        "gives": method.get("gives"),
    }


def _asked(ask: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any] | None, str | None]:
    """Return an answer, or why the server refuses it."""
    from ldprecover_client.errors import RefusedError

    try:
        return ask(), None
    except RefusedError as error:
        if error.slug in ("unauthorized", "forbidden", "round-not-found"):
            raise
        return None, error.detail or error.title

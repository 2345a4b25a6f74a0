"""`round report`: a round, its recoveries, alarms and suspects in one HTML file."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover_cli import completion
from ldprecover_cli.errors import UsageError, check_items, file_errors
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Key, RoundArgument, Url, connected_to
from ldprecover_cli.output import JsonObject, note

if TYPE_CHECKING:
    from ldprecover_client import Client

METHODS = ("norm-sub", "ldprecover", "unmix")
"""The recoveries of a report unless --method names others."""

_RECOVERY_FIELDS = ("method", "eta", "targets", "recovered", "notes", "conclusions")


def report(
    round: RoundArgument = CURRENT,
    *,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="The new HTML file; ROUND.html when absent.", metavar="FILE"),
    ] = None,
    method: Annotated[
        list[str] | None,
        Option(
            help="A recovery to include; repeat for several. norm-sub, ldprecover and unmix when "
            "absent.",
            autocompletion=completion.methods,
        ),
    ] = None,
    target: Annotated[
        list[str] | None, Option(help="An item known to be attacked; repeat for several.")
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a report about a round: one HTML file with charts.

    It shows what was collected, what is certain, recoveries, alarms and suspects, and needs no
    server.

    Example: ldprecover round report cities

    Example: ldprecover round report cities -o monday.html
    """
    from ldprecover_cli.round.html_page import html_page

    if output is None:
        output = Path(Path(f"{_name(round, url, key)}.html").name)  # no folder that a server names
    # Opened first: recoveries may take minutes, and an existing file must not be overwritten.
    with file_errors("write", output):
        file = output.open("x", encoding="utf-8", newline="\n")
    try:
        with file, connected_to(round, url, key) as (client, chosen):
            content = _collect(client, chosen.reference, method or METHODS, target or ())
            name = content["round"]["name"]
            html = html_page("js/report.js", f"{name}: a report", content)
            with file_errors("write", output):
                file.write(html)
                file.flush()
    except BaseException:  # a partial report would block the next attempt
        output.unlink(missing_ok=True)
        raise
    note(f"A report about {chosen.title} is in {output}; any browser shows it.")


def _name(round: str, url: str, key: str | None) -> str:
    """Return the name of a round, from its server."""
    with connected_to(round, url, key) as (client, chosen):
        return client.round(chosen.reference).name


def _collect(
    client: "Client", round: str, methods: Sequence[str], targets: Sequence[str]
) -> JsonObject:
    from ldprecover_client.leader import certified_leader

    status = client.round(round)
    check_items(targets, status.parameters.items, status.name)
    id_ = status.id
    available = {method["name"]: method for method in client.methods(id_)["methods"]}
    for name in methods:
        if name not in available:
            raise UsageError(
                f"--method {name}: the server has no such method; `ldprecover result methods` "
                "lists them"
            )
    frequencies = client.frequencies(id_).body
    has_reports = frequencies["n"] > 0
    nothing = (None, "The round has no reports.")
    recoveries = (
        [_recover(client, id_, available[name], targets) for name in methods] if has_reports else []
    )
    alarms, no_alarms = _try(lambda: client.alarms(id_)) if has_reports else nothing
    suspects, no_suspects = _try(lambda: client.suspects(id_)) if has_reports else nothing
    certificate = certified_leader(client, id_) if has_reports else None
    summary = asdict(status.summary)
    own = {name: value for name, value in summary["own"].items() if value is not None}
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "round": {**summary, "own": own},
        "frequencies": frequencies,
        "recoveries": [recovery for recovery in recoveries if "recovered" in recovery],
        "refused": [recovery for recovery in recoveries if "recovered" not in recovery],
        "alarms": alarms,
        "no_alarms": no_alarms,
        "suspects": suspects,
        "no_suspects": no_suspects,
        "certificate": None
        if certificate is None
        else {
            "sentence": certificate["answers"][0]["sentence"],
            "assumption": certificate["assumption"],
            "least_malicious_share": certificate["least_malicious_share"],
        },
    }


def _recover(client: "Client", id_: str, method: JsonObject, targets: Sequence[str]) -> JsonObject:
    """Return one recovery of the round, or the reason why the server has none."""
    name = method["name"]
    note(f"Recovering by {name} …")
    result, reason = _try(lambda: client.recover(id_, method=name, targets=list(targets)))
    if result is None:
        return {"method": name, "reason": reason}
    fields = {field: result.get(field) for field in _RECOVERY_FIELDS}
    return {**fields, "summary": method["summary"], "gives": method.get("gives")}


def _try(request: Callable[[], JsonObject]) -> tuple[JsonObject | None, str | None]:
    """Return the response to a request, or the reason why the server rejects it."""
    from ldprecover_client.errors import RefusedError

    try:
        return request(), None
    except RefusedError as error:
        if error.slug in ("unauthorized", "forbidden", "round-not-found"):
            raise
        return None, error.detail or error.title

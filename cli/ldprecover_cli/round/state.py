"""`round list`, `round show`, `round close` and `round delete`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ldprecover.sentences import counted
from ldprecover_cli import completion
from ldprecover_cli.connection import connected, connected_to, round_or_form, titled
from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cli.options import (
    CURRENT,
    DEFAULT_URL,
    Json,
    Key,
    RoundArgument,
    Url,
    Yes,
)
from ldprecover_cli.output import console, joined, plain_table, print_json, print_whole

if TYPE_CHECKING:
    from ldprecover_client import Client, Form, RoundStatus, RoundSummary, Series

_Own = Annotated[
    str,
    Argument(
        help="Id or name of the round or form.",
        metavar="ROUND|FORM",
        autocompletion=completion.rounds,
    ),
]
"""The round or form of a command that never takes the current round."""
_SHOWN = 40  # characters of a question in a list
_OTHER_COLUMNS = 84  # characters of a list beside the name
_WITH_QUESTIONS = 66  # those without the time of opening


def list_rounds(
    *,
    series: Annotated[
        str | None, Option(help="Only the rounds or forms of a series.", metavar="NAME")
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List the rounds of a server, with what their verdicts say of an attack.

    The round opened last comes first; it is the current one.

    Example: ldprecover round list
    """
    with connected(url) as client:
        if series is not None:
            _list_series(client.series(series), json)
            return
        rounds = client.rounds()
    if json:
        print_json({"rounds": rounds})
        return
    if not rounds:
        console().print("No rounds yet. Open one with: ldprecover round open")
        return
    out = console()
    attacks = [round.verdict.attack.replace("_", " ") if round.verdict else "" for round in rounds]
    room = out.width - max(len(round.name) for round in rounds)
    dated = room >= _OTHER_COLUMNS
    rows = (
        (
            round.name,
            _shortened(round.question or round.title or "") if room >= _WITH_QUESTIONS else "",
            round.state,
            attack,
            round.protocol,
            f"{round.opened_at[:16].replace('T', ' ')}Z" if dated else "",
            f"{round.epsilon:g}",
            f"{round.domain_size:,}",
            f"{round.n:,}",
        )
        for round, attack in zip(rounds, attacks, strict=True)
    )
    columns = (
        "name",
        "question",
        "state",
        "attack",
        "protocol",
        "opened",
        "epsilon",
        "items",
        "reports",
    )
    table = plain_table(*columns, rows=rows, numbers=3, no_wrap=24)  # names are copied
    print_whole(out, table)
    if not dated:
        out.print("A wider terminal also shows the time of opening.")


def _list_series(series: "Series", json: bool) -> None:
    if json:
        print_json(series)
        return
    rows = (
        (str(entry.number), entry.name, entry.state, entry.opened_at[:10], f"{entry.n:,}")
        for entry in series.entries
    )
    columns = ("number", "name", "state", "opened", "reports")
    console().print(plain_table(*columns, rows=rows, numbers=1))


def _shortened(question: str) -> str:
    """Return a question for a list."""
    return question if len(question) <= _SHOWN else f"{question[: _SHOWN - 1]}…"


def show_round(
    round: RoundArgument = CURRENT, *, url: Url = DEFAULT_URL, json: Json = False
) -> None:
    """Show a round's parameters, its state and the number of its reports.

    Example: ldprecover round show cities
    """
    with connected_to(round, url) as (client, target):
        status = client.round(target.reference)
    if json:
        print_json(status)
    else:
        _show(status, target.title)


def close_round(
    round: _Own,
    *,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Close a round, or all rounds of a form: its reports stay, new ones are rejected.

    Example: ldprecover round close cities
    """
    with connected(url, key) as client:
        status = round_or_form(round, client.close_round, client.close_form)
    if json:
        print_json(status)
    else:
        title = titled(status.name, round)
        console().print(f"{title} is closed, with {counted(status.n, 'report')}.")


def delete_round(
    round: _Own,
    *,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Delete a round and all its reports, or a form with its rounds.

    This cannot be undone.

    Example: ldprecover round delete cities --yes
    """
    from ldprecover_client import Form

    with connected(url, key) as client:
        status = _listed(client, round)
        is_form = isinstance(status, Form)
        kind = "the form " if is_form else ""
        title = f"{kind}{titled(status.name, round)} and its {counted(status.n, 'report')}"
        if not yes:
            if sys.stdin is None or not sys.stdin.isatty():
                raise UsageError("deleting needs --yes without a terminal")
            if not typer.confirm(f"Delete {title}?", err=True):
                raise CommandError("nothing was deleted")
        (client.delete_form if is_form else client.delete_round)(status.id)
    if json:
        print_json({"deleted": status.id})
    else:
        console().print(f"Deleted {title}.")


def _listed(client: "Client", reference: str) -> "RoundSummary | Form":
    """Return a round from the list, which has those whose protocol is not loaded too; or a form."""
    before = None
    while page := client.rounds(before):
        for summary in page:
            if reference in (summary.id, summary.name, CURRENT):
                return summary
        before = page[-1].id
    return round_or_form(reference, client.round, client.form)


def _show(status: "RoundStatus", title: str) -> None:
    fields, labels = status.model_dump(exclude={"items"}), status.items
    shown = joined(labels[:8]) + (f"; … ({len(labels) - 8:,} more)" if len(labels) > 8 else "")
    fields |= {
        "p": f"{status.p:.6g}, the probability that a report supports its user's item",
        "q": f"{status.q:.6g}, the probability that it supports another item",
        "digest": f"{status.digest}, the hash of the parameters",
        "practice": status.practice or None,
        "verdict": status.verdict and " ".join(status.verdict.sentences),
    }
    fields |= {"name": title, "n": counted(status.n, "report"), "items": shown}
    rows = ((name, str(value)) for name, value in fields.items() if value is not None)
    console().print(plain_table("", "", rows=rows))

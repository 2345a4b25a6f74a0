"""`round`: open, list, show, close and delete rounds."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ldprecover_cli import completion
from ldprecover_cli.errors import CommandError, UsageError, explain
from ldprecover_cli.options import (
    AUTO,
    DEFAULT_URL,
    Column,
    DatasetName,
    Json,
    Key,
    Protocol,
    RoundArgument,
    Url,
    choice_of,
    connected,
    own_parameters_of,
)
from ldprecover_cli.output import console, counted, joined, plain, plain_table, print_json

if TYPE_CHECKING:
    from ldprecover.planning.choosing import Choice
    from ldprecover_client import Client, RoundStatus, RoundSummary

_BESIDE_NAMES = 68  # characters that the other columns of a list take
_COSTS = (
    "error: of one estimate; gain: what 1 % crafted reports add to {} items together; bytes: of a "
    "report; "
    "hashes: to count all reports"
)
_USERS = 10_000

app = typer.Typer(no_args_is_help=True)


@app.callback()
def rounds() -> None:
    """Open, list, show, close and delete rounds.

    A round is one collection with parameters that never change.

    Example: ldprecover round open cities --dataset cities --epsilon 0.5
    """


@app.command("open")
def open_round(
    *,
    name: Annotated[
        str | None, typer.Argument(help="Name; made from the protocol when absent.", metavar="NAME")
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option(help="Privacy budget of one report, 0.01 to 10; smaller is more private."),
    ],
    protocol: Annotated[
        Protocol,
        typer.Option(
            help="How users perturb their values: grr, oue, olh, sue, ss, hr, another that the "
            "server has, or auto.",
            metavar="NAME",
            autocompletion=completion.protocols,
        ),
    ] = "olh",
    item: Annotated[
        list[str] | None, typer.Option(help="An item users may hold; give it once for each.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="Text file with one item a line.", metavar="FILE")
    ] = None,
    dataset: DatasetName = None,
    column: Column = None,
    domain_size: Annotated[
        int | None, typer.Option(help='Number of items, called "0", "1", ….')
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(
            help="Users that are expected, for --protocol auto to choose by; 10,000 when absent."
        ),
    ] = None,
    hash_range: Annotated[
        int | None, typer.Option(help="g, for olh alone; ceil(e^epsilon + 1) when absent.")
    ] = None,
    subset_size: Annotated[
        int | None,
        typer.Option(help="k, for ss alone; max(1, round(d/(e^epsilon + 1))) when absent."),
    ] = None,
    given_seeds: Annotated[
        int | None,
        typer.Option(
            help="M, for olh with --access ticket: each ticket picks one of so many public seeds.",
            metavar="M",
        ),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="The own parameter of another protocol that the server has.", metavar="NAME=N"
        ),
    ] = None,
    access: Annotated[
        Literal["open", "key", "ticket"],
        typer.Option(
            help="Who may report: anyone, one report a submission; or holders of a report key; or "
            "of a ticket."
        ),
    ] = "open",
    read_access: Annotated[
        Literal["public", "key"],
        typer.Option(help="Who may read the results: anyone, or holders of an analyst key."),
    ] = "public",
    retention: Annotated[
        str,
        typer.Option(
            help="How long reports are kept once counted: forever, none, or hours or days, as 36h "
            "or 7d. Counts stay.",
            metavar="TIME",
        ),
    ] = "forever",
    series: Annotated[
        str | None,
        typer.Option(
            help="Series of rounds over the same items, for `ldprecover suspects` to compare."
        ),
    ] = None,
    canaries: Annotated[
        int | None,
        typer.Option(
            help="Number of canaries to add: items that nobody holds, so that shifts show."
        ),
    ] = None,
    canary: Annotated[
        list[str] | None,
        typer.Option(help="A canary to add, by its label; give it once for each.", metavar="LABEL"),
    ] = None,
    quarantine: Annotated[
        bool,
        typer.Option(
            "--quarantine",
            help="Set reports aside that no honest user sends; they are not counted.",
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Open a round over a list of items.

    Its parameters never change, and users may report from now on.

    Example: ldprecover round open lunch --epsilon 1 --item soup --item salad

    Example: ldprecover round open cities --epsilon 0.5 --dataset cities

    Example: ldprecover round open pages --epsilon 1 --domain-size 99 --protocol auto --users 90000

    Example: ldprecover round open a --epsilon 1 --dataset cities --access ticket --given-seeds 512

    Example: ldprecover round open us --epsilon 1 --items us.txt --read-access key --retention 30d
    """
    labels = _labels(item, items, dataset, column, domain_size)
    if canaries is not None and canary:
        raise UsageError("give canaries by --canaries or by --canary, not by both")
    own = {"hash_range": hash_range, "subset_size": subset_size, "given_seeds": given_seeds}
    _check_given_once(parameter, **own)
    own |= own_parameters_of(parameter)
    if protocol == AUTO:
        d = (len(labels) if labels is not None else domain_size or 0) + (
            len(canary) if canary else canaries or 0
        )
        protocol = _chosen(d, epsilon, users, own, silent=json)
    elif users is not None:
        raise UsageError("--users belongs to --protocol auto")
    with connected(url, key) as client, _protocols_in_words(protocol, own):
        opened = client.open_round(
            name=name,
            protocol=protocol,
            epsilon=epsilon,
            items=labels,
            domain_size=domain_size,
            **own,
            access=access,
            read_access=read_access,
            retention=retention,
            series=series,
            canaries=canary or canaries,
            quarantine=quarantine or None,
        )
    _show(opened, json=json)


def _chosen(
    d: int, epsilon: float, users: int | None, own: Mapping[str, int | None], *, silent: bool
) -> str:
    """Return the protocol that `--protocol auto` chooses for d items, and say why unless silent."""
    for name, value in own.items():
        if value is not None:
            raise UsageError(
                f"{name} belongs to one protocol: name it with --protocol, in place of auto"
            )
    expected = _USERS if users is None else users
    choice = choice_of(d, epsilon, expected)
    if not silent:
        _show_choice(choice, d, epsilon, expected)
    return choice.best.oracle.protocol


@app.command("list")
def list_rounds(*, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List the rounds of a server.

    The one opened last comes first: it is the current round.

    Example: ldprecover round list
    """
    with connected(url) as client:
        found = client.rounds()
    if json:
        print_json({"rounds": [_flat(round) for round in found]})
        return
    if not found:
        console().print("No rounds yet. Open one with: ldprecover round open")
        return
    out = console()
    dated = max(len(round.name) for round in found) + _BESIDE_NAMES <= out.width
    table = plain_table(
        "name",
        "state",
        "protocol",
        *(["opened"] if dated else []),
        "epsilon",
        "items",
        "reports",
        numbers=3,
    )
    table.columns[0].no_wrap = True  # a name is there to be copied
    for round in found:
        opened = [f"{round.opened_at[:16].replace('T', ' ')}Z"] if dated else []
        row = map(plain, (round.name, round.state, round.protocol, *opened))
        table.add_row(*row, f"{round.epsilon:g}", f"{round.domain_size:,}", f"{round.n:,}")
    out.print(table)
    if not dated:
        out.print("A wider terminal shows when each was opened.")


@app.command("show")
def show_round(
    round: RoundArgument = "current", *, url: Url = DEFAULT_URL, json: Json = False
) -> None:
    """Show a round: its parameters, its state and the number of reports counted.

    Example: ldprecover round show cities
    """
    with connected(url, round=round) as client:
        _show(client.round(round), json=json)


@app.command("close")
def close_round(
    round: RoundArgument, *, url: Url = DEFAULT_URL, key: Key = None, json: Json = False
) -> None:
    """Close a round.

    Reports that were counted stay; no report enters any more.

    Example: ldprecover round close cities
    """
    with connected(url, key, round=round) as client:
        _show(client.close_round(round), json=json)


@app.command("delete")
def delete_round(
    round: RoundArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Delete a round and all its reports.

    There is no way back.

    Example: ldprecover round delete cities --yes
    """
    with connected(url, key, round=round) as client:
        status = _listed(client, round)
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError("deleting needs --yes where nobody can be asked")
            if not typer.confirm(
                f"Delete {plain(status.name)} and its {counted(status.n, 'report')}?", err=True
            ):
                raise CommandError("nothing was deleted")
        client.delete_round(status.id)
    if json:
        print_json({"deleted": status.id})
    else:
        console().print(f"Deleted {plain(status.name)} and its {counted(status.n, 'report')}.")


def _check_given_once(parameter: list[str] | None, **options: int | None) -> None:
    """Raise UsageError for a parameter that is given by its own option and by --parameter."""
    for name in own_parameters_of(parameter):
        if options.get(name) is not None:
            raise UsageError(
                f"give {name} by --{name.replace('_', '-')} or by --parameter, not by both"
            )


@contextmanager
def _protocols_in_words(protocol: str, own: Mapping[str, int | None]) -> Iterator[None]:
    """Say what to do where a server refuses a protocol, or a parameter that no protocol has
    there.
    """
    from ldprecover.protocols import PROTOCOLS
    from ldprecover_client import RefusedError

    try:
        yield
    except RefusedError as error:
        refused = dict(error.fields)
        if "protocol" in refused:
            said = explain(error)
            raise UsageError(
                f"{said[0] if said else error}; a plugin's is there once LDPRECOVER_PLUGINS names "
                "it where the server "
                "is started"
            ) from error
        for name in own:
            if own[name] is not None and "not known" in refused.get(name, ""):
                kind = PROTOCOLS.get(protocol)
                has = "" if kind is None else f"; {protocol} has {kind.parameter or 'none'}"
                raise UsageError(
                    f"--parameter {name}: no protocol of the server has such a parameter{has}"
                ) from error
        raise


def _show_choice(choice: "Choice", d: int, epsilon: float, users: int) -> None:
    console().print(
        f"{d:,} items, epsilon {epsilon:g}, {counted(users, 'user')}: the first suits best"
    )
    table = plain_table("protocol", "error", "gain", "bytes", "hashes", numbers=4)
    for each in choice.candidates:
        error, gain = f"±{100 * each.standard_error:.3g} points", f"{each.gain:.3g} points"
        hashes = f"{each.hash_tests:.2g}" if each.hash_tests else "none"
        table.add_row(plain(each.oracle.protocol), error, gain, str(each.report_size), hashes)
    console().print(table)
    console().print(_COSTS.format(choice.best.targets))


def _labels(
    item: list[str] | None,
    items: Path | None,
    dataset: str | None,
    column: str | None,
    domain_size: int | None,
) -> list[str] | None:
    """Return the labels of the one source of items that was given, None for a domain size."""
    given = [option for option in (item or None, items, dataset, domain_size) if option is not None]
    if len(given) != 1:
        raise UsageError(
            "say what the items are with one of --item, --items, --dataset and --domain-size"
        )
    if column is not None and dataset is None:
        raise UsageError("--column belongs to --dataset")
    if dataset is not None:
        from ldprecover_client import load_dataset

        return list(load_dataset(dataset, column).items)
    if items is not None:
        try:
            lines = items.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{items} cannot be read: {error}") from error
        return [line.strip() for line in lines if line.strip()]
    return item or None


def _listed(client: "Client", reference: str) -> "RoundSummary":
    """Return a round as the list has it, so that one whose protocol is not loaded, there or here,
    is found too.
    """
    before = None
    while page := client.rounds(before):
        for found in page:
            if reference in (found.id, found.name, "current"):
                return found
        before = page[-1].id
    return client.round(reference).summary  # which says that it is not there


def _fields(status: "RoundStatus") -> dict[str, Any]:
    return {**_flat(status.summary), "items": list(status.parameters.items)}


def _flat(summary: "RoundSummary") -> dict[str, Any]:
    """Return a round's fields by name, the protocols' own parameters among them."""
    flat: dict[str, Any] = {}
    for name, value in asdict(summary).items():
        flat |= value if name == "own" else {name: value}
    return flat


def _aside(status: "RoundStatus") -> str | None:
    """Return how many reports were set aside, in words."""
    if (aside := status.quarantined) is None:
        return None
    seeds = (
        "seeds are looked at once it is closed"
        if aside.seeds is None
        else f"{aside.seeds} by their seed"
    )
    return f"{counted(aside.sizes, 'report')} by their size; {seeds}"


def _show(status: "RoundStatus", *, json: bool) -> None:
    fields = _fields(status)
    if json:
        print_json(fields)
        return
    labels = fields.pop("items")
    shown = joined(labels[:8]) + (f"; … ({len(labels) - 8:,} more)" if len(labels) > 8 else "")
    table = plain_table("", "")
    table.show_header = False
    fields |= {"quarantine": status.parameters.quarantine or None, "quarantined": _aside(status)}
    fields["canaries"] = joined([labels[i] for i in fields["canaries"]]) or None
    for name, value in {**fields, "n": counted(status.n, "report"), "items": shown}.items():
        if value is not None:
            table.add_row(name, plain(str(value)))
    console().print(table)

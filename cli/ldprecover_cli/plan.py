"""`plan`: a round that is not there yet, by its items, users, epsilon and error, and what attackers
gain.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli import completion
from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import Json
from ldprecover_cli.output import console, plain, plain_table, print_json

if TYPE_CHECKING:
    from ldprecover.planning import Plan, PlannedRound

_SOLVED = {
    "domain_size": "the most items",
    "users": "the fewest users",
    "epsilon": "the smallest epsilon",
    "error": "the standard error",
}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    *,
    domain_size: Annotated[
        int | None, typer.Option(help="d, the number of items.", metavar="D")
    ] = None,
    users: Annotated[int | None, typer.Option(help="n, as many reports.", metavar="N")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy budget of one report, 0.01 to 10.")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="Standard error that is wanted, as a frequency: 0.005 is half a percentage point."
        ),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="Plan for this one; give it once for each. All are compared when absent.",
            metavar="NAME",
            autocompletion=completion.protocols,
        ),
    ] = None,
    sum_of: Annotated[
        int, typer.Option(help="Items whose estimates are added; the error is of their sum.")
    ] = 1,
    frequency: Annotated[
        float | None, typer.Option(help="What these items have together; 1/d each when absent.")
    ] = None,
    targets: Annotated[
        int | None,
        typer.Option(help="Items that an attacker raises together; min(10, d/2) when absent."),
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="Share of malicious users; 0.05 when absent.")
    ] = None,
    gain: Annotated[
        float | None,
        typer.Option(
            help="Instead of --beta: what they may add to the targets together, as a frequency."
        ),
    ] = None,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="Work out gains that take seconds too, where seeds are searched for."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Plan a round: give all but one of --domain-size, --users, --epsilon and --error.

    The one that is left out is worked out for every protocol, and what an attacker can gain at
    most. No server is asked.

    Example: ldprecover plan --domain-size 102 --epsilon 0.5 --error 0.005

    Example: ldprecover plan --domain-size 102 --users 100000 --error 0.005 --sum-of 10 --beta 0.01

    Example: ldprecover plan --domain-size 102 --users 100000 --epsilon 1 --gain 0.01 --json
    """
    four = {"--domain-size": domain_size, "--users": users, "--epsilon": epsilon, "--error": error}
    missing = [option for option, value in four.items() if value is None]
    if len(missing) != 1:
        what = f"{', '.join(missing)} are missing" if missing else "all are given"
        raise UsageError(f"give all but one of {', '.join(four)}: {what}")
    from ldprecover.planning import PlanRequest
    from ldprecover.planning import plan as planned

    request = PlanRequest(
        domain_size, users, epsilon, error, sum_of, frequency, targets, beta, gain
    )
    found = planned(request, protocol or None, thorough=thorough)
    if json:
        print_json(found.to_dict())
    else:
        _show(found)


def _show(found: "Plan") -> None:
    out = console()
    able = [each for each in found.rounds if each.reason is None]
    if able:
        out.print(f"Worked out: {_SOLVED[found.request.solved]}. The first is the one to take.")
        out.print(_rounds(able))
    for each in found.rounds:
        if each.reason is not None:
            out.print(f"Not with {plain(each.protocol)}: {plain(each.reason)}.")
    if not able:
        return
    best = able[0]
    targets = "one target" if best.targets == 1 else f"{best.targets} targets together"
    out.print()
    out.print(
        f"What malicious users add at most to the estimates of {targets}, in percentage points:"
    )
    out.print(_gains(able))
    for said in _left_out(able):
        out.print(said)


def _rounds(able: "list[PlannedRound]") -> Any:
    table = plain_table(
        "protocol",
        "items",
        "users",
        "epsilon",
        "error, %",
        "± 95 %",
        "all items, ±",
        "bytes",
        numbers=7,
    )
    for each in able:
        table.add_row(
            plain(each.protocol),
            f"{each.domain_size:,}",
            f"{each.users:,}",
            f"{each.epsilon:.4g}",
            _points(each.standard_error),
            _points(each.margin),
            _points(each.margin_of_all),
            f"{each.report_size:,}",
        )
    return table


def _gains(able: "list[PlannedRound]") -> Any:
    table = plain_table("attack", *(plain(each.protocol) for each in able), numbers=len(able))
    table.add_row("share of malicious users", *(f"{100 * (each.beta or 0):.3g} %" for each in able))
    for row in zip(*(each.gains for each in able), strict=True):
        table.add_row(plain(row[0].attack), *(_points(each.gain) for each in row))
    worst = [each.worst for each in able if each.worst is not None]
    table.add_row("any report at all", *(_points(each.rise) for each in worst))
    table.add_row("the same, projected", *(_points(each.projected_rise) for each in worst))
    return table


def _left_out(able: "list[PlannedRound]") -> Iterator[str]:
    if any("long" in (gain.reason or "") for each in able for gain in each.gains):
        yield "Some gains take long to work out: --thorough has them too."


def _points(share: float | None) -> str:
    """Return a frequency in percentage points, with three digits; a dash for none."""
    if share is None:
        return "-"
    return f"{100 * share:,.0f}" if abs(share) >= 1 else f"{100 * share:.3g}"

"""`stats`, `methods`, `alarms` and `suspects`: what came in, what can be recovered, what looks like
an attack.
"""

from typing import Annotated

import typer

from ldprecover_cli.options import (
    DEFAULT_URL,
    Json,
    Key,
    RoundArgument,
    RoundOption,
    Url,
    connected,
)
from ldprecover_cli.output import console, counted, plain, plain_table, print_json


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(stats)
    app.command()(methods)
    app.command()(alarms)
    app.command()(suspects)


def stats(
    round: RoundArgument = "current",
    *,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show what came of a round's submissions: reports counted, duplicates, and refusals by their
    reason.

    Refusals are written down every few seconds.

    Example: ldprecover stats cities
    """
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.stats(round)
    if json:
        print_json(answer)
        return
    table = plain_table("", "", numbers=1)
    table.show_header = False
    table.add_row("reports counted", f"{answer['reports']:,}")
    table.add_row("submissions that were there already", f"{answer['duplicates']:,}")
    for reason, number in answer["refusals"].items():
        table.add_row(plain(f"submissions refused: {reason}"), f"{number:,}")
    console().print(table)


def methods(
    *,
    round: RoundOption = "current",
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """List the recovery methods: what each needs, and whether this round can give it.

    Example: ldprecover methods --round cities
    """
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.methods(round)
    if json:
        print_json(answer)
        return
    out = console()
    table = plain_table("method", "needs", "")
    for method in answer["methods"]:
        said = (
            method["summary"]
            if method["available"]
            else f"not here: {method['reason'].removeprefix(method['name'] + ': ')}"
        )
        table.add_row(
            plain(method["name"]), plain(", ".join(map(str, method["needs"]))), plain(said)
        )
    out.print(table)
    out.print("Use one: ldprecover recover --method NAME")


def alarms(
    *,
    round: RoundOption = "current",
    rate: Annotated[
        float, typer.Option(help="False-alarm rate of each, from 1e-9 to below 0.5.")
    ] = 1e-3,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Test a round for reports that honest users would not have sent.

    Silence proves nothing: users who lie about their value and perturb the lie honestly raise no
    alarm.

    Example: ldprecover alarms --round cities --rate 0.0001
    """
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.alarms(round, rate=rate)
    if json:
        print_json(answer)
        return
    out = console()
    read = (
        ""
        if answer.get("reports_read")
        else "; its reports are not all kept, so tests that read them are left out"
    )
    out.print(f"{counted(answer['n'], 'report')}{read}")
    table = plain_table("alarm", "", "what it is", "statistic", "threshold", numbers=2)
    for alarm in answer["alarms"]:
        raised = "RAISED" if alarm["raised"] else "silent"
        numbers = (f"{alarm['statistic']:.4g}", f"{alarm['threshold']:.4g}")
        table.add_row(plain(alarm["name"]), raised, plain(alarm["meaning"]), *numbers)
    out.print(table)


def suspects(
    *,
    round: RoundOption = "current",
    rate: Annotated[
        float, typer.Option(help="Expected share of false suspicions, above 0 and below 0.5.")
    ] = 0.05,
    drift: Annotated[
        float,
        typer.Option(
            help="Standard deviation by which true frequencies may change between rounds."
        ),
    ] = 0.0,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show which items rose since the earlier closed rounds of the series by more than their noise.

    A true trend rises too: look at them before you recover with `--infer-targets`.

    Example: ldprecover suspects --round week-30 --drift 0.002
    """
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.suspects(round, rate=rate, drift=drift)
    if json:
        print_json(answer)
        return
    out = console()
    out.print(f"Compared with {counted(len(answer['earlier']), 'earlier round')} of the series")
    if not answer["suspects"]:
        out.print("No item rose by more than noise explains.")
        return
    table = plain_table("item", "before, %", "now, %", "z", numbers=3)
    for suspect in answer["suspects"]:
        shares = (f"{100 * suspect['before']:.2f}", f"{100 * suspect['now']:.2f}")
        table.add_row(plain(suspect["label"]), *shares, f"{suspect['z']:.1f}")
    out.print(table)

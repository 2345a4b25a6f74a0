"""`stats`, `methods`, `alarms` and `suspects`: statistics and tests of a round."""

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


def stats(
    round: RoundArgument = "current",
    *,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show how many submissions a round counted, and rejected by reason.

    The server stores the numbers of rejected submissions every few seconds.

    Example: ldprecover stats cities
    """
    with connected(url, key, scope="analyst", round=round) as client:
        result = client.stats(round)
    if json:
        print_json(result)
        return
    table = plain_table("", "", numbers=1)
    table.show_header = False
    table.add_row("reports counted", f"{result['reports']:,}")
    table.add_row("duplicate submissions", f"{result['duplicates']:,}")
    for reason, number in result["refusals"].items():
        table.add_row(plain(f"rejected submissions: {reason}"), f"{number:,}")
    console().print(table)


def methods(
    *,
    round: RoundOption = "current",
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """List the recovery methods, what each needs, and which fit this round.

    Example: ldprecover methods --round cities
    """
    with connected(url, key, scope="analyst", round=round) as client:
        result = client.methods(round)
    if json:
        print_json(result)
        return
    out = console()
    table = plain_table("method", "needs", "")
    for method in result["methods"]:
        reason = (method["reason"] or "").removeprefix(f"{method['name']}: ")
        text = method["summary"] if method["available"] else f"not for this round: {reason}"
        needs = ", ".join(map(str, method["needs"]))
        table.add_row(*map(plain, (method["name"], needs, text)))
    out.print(table)
    out.print("To use one: ldprecover recover --method NAME")


def alarms(
    *,
    round: RoundOption = "current",
    rate: Annotated[
        float, typer.Option(help="False-alarm rate of each test, from 1e-9 to below 0.5.")
    ] = 1e-3,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Test a round for reports that honest users do not send.

    No alarm proves nothing: users who perturb a false value honestly raise none.

    Example: ldprecover alarms --round cities --rate 0.0001
    """
    with connected(url, key, scope="analyst", round=round) as client:
        result = client.alarms(round, rate=rate)
    if json:
        print_json(result)
        return
    out = console()
    note = "" if result.get("reports_read") else "; without tests that need all reports stored"
    out.print(f"{counted(result['n'], 'report')}{note}")
    table = plain_table("alarm", "", "meaning", "statistic", "threshold", numbers=2)
    for alarm in result["alarms"]:
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
        typer.Option(help="Standard deviation of changes in the true frequencies between rounds."),
    ] = 0.0,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show the items that rose by more than noise since earlier closed rounds of the series.

    A true trend rises too: check them before you recover with `--infer-targets`.

    Example: ldprecover suspects --round week-30 --drift 0.002
    """
    with connected(url, key, scope="analyst", round=round) as client:
        result = client.suspects(round, rate=rate, drift=drift)
    if json:
        print_json(result)
        return
    out = console()
    out.print(f"Compared with {counted(len(result['earlier']), 'earlier round')} of the series")
    if not result["suspects"]:
        out.print("No item rose by more than noise explains.")
        return
    table = plain_table("item", "before, %", "now, %", "z", numbers=3)
    for suspect in result["suspects"]:
        shares = (f"{100 * suspect['before']:.2f}", f"{100 * suspect['now']:.2f}")
        table.add_row(plain(suspect["label"]), *shares, f"{suspect['z']:.1f}")
    out.print(table)

"""`frequencies`, `stats`, `methods`, `alarms` and `suspects`: what a round tells."""

from typing import Annotated

from typer import Option

from ldprecover_cli.item_tables import Top, largest, print_items
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


def frequencies(
    *,
    round: RoundOption = "current",
    top: Top = 20,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show a round's estimated frequencies: unbiased, not clipped, each with its standard error.

    Example: ldprecover frequencies --round cities --top 10
    """
    with connected(url, key, scope="analyst", round=round) as client:
        result = client.frequencies(round).body
    if json:
        print_json(result)
        return
    out = console()
    out.print(
        f"{counted(result['n'], 'report')}, {plain(result['protocol'])}, epsilon "
        f"{result['epsilon']:g}"
    )
    if quarantined := result.get("quarantined"):
        number = quarantined["sizes"] + (quarantined["seeds"] or 0)
        out.print(f"{counted(number, 'report')} in quarantine and not counted.")
    if not result["n"]:
        out.print("No estimates yet: the round has no reports.")
        return
    shares = result["frequencies"]
    errors, canaries = result["standard_errors"], result.get("canaries", ())
    print_items(
        out,
        {
            i: result["items"][i] + (" (canary)" if i in canaries else "")
            for i in largest(shares, top)
        },
        shares,
        {
            "percent": lambda i: f"{100 * shares[i]:.2f}",
            "± s.e.": lambda i: f"{100 * errors[i]:.2f}",
        },
        beside=19,
        top=top,
    )
    out.print(f"Sum of all estimates: {result['sum']:.3f}; 1 is expected of honest reports.")
    for note in result.get("notes") or ():
        out.print(f"Note: {plain(note)}")


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
    numbers = {
        "reports counted": result["reports"],
        "duplicate submissions": result["duplicates"],
        **{f"rejected submissions: {reason}": n for reason, n in result["refusals"].items()},
    }
    rows = ((name, f"{number:,}") for name, number in numbers.items())
    console().print(plain_table("", "", rows=rows, numbers=1))


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
    out, rows = console(), []
    for method in result["methods"]:
        reason = (method["reason"] or "").removeprefix(f"{method['name']}: ")
        text = method["summary"] if method["available"] else f"not for this round: {reason}"
        rows.append((method["name"], ", ".join(map(str, method["needs"])), text))
    out.print(plain_table("method", "needs", "", rows=rows))
    out.print("To use one: ldprecover recover --method NAME")


def alarms(
    *,
    round: RoundOption = "current",
    rate: Annotated[
        float, Option(help="False-alarm rate of each test, from 1e-9 to below 0.5.")
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
    rows = (
        (
            alarm["name"],
            "RAISED" if alarm["raised"] else "silent",
            alarm["meaning"],
            f"{alarm['statistic']:.4g}",
            f"{alarm['threshold']:.4g}",
        )
        for alarm in result["alarms"]
    )
    columns = ("alarm", "", "meaning", "statistic", "threshold")
    out.print(plain_table(*columns, rows=rows, numbers=2))


def suspects(
    *,
    round: RoundOption = "current",
    rate: Annotated[
        float, Option(help="Expected share of false suspicions, above 0 and below 0.5.")
    ] = 0.05,
    drift: Annotated[
        float,
        Option(help="Standard deviation of changes in the true frequencies between rounds."),
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
    rows = (
        (row["label"], f"{100 * row['before']:.2f}", f"{100 * row['now']:.2f}", f"{row['z']:.1f}")
        for row in result["suspects"]
    )
    out.print(plain_table("item", "before, %", "now, %", "z", rows=rows, numbers=3))

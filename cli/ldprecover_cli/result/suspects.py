"""`result suspects`: items that rose since earlier rounds."""

from typing import Annotated

from typer import Option

from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundArgument, Url, connected_to
from ldprecover_cli.output import console, counted, plain_table, print_json


def suspects(
    round: RoundArgument = CURRENT,
    *,
    rate: Annotated[
        float, Option(help="Expected share of false suspicions, above 0 and below 0.5.")
    ] = 0.05,
    drift: Annotated[
        float, Option(help="Standard deviation of changes in the true frequencies between rounds.")
    ] = 0.0,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show the items that rose by more than noise since earlier closed rounds.

    The rounds are those of the series, which `ldprecover round open --series` names.

    A true trend rises too: check them before you recover with `--infer-targets`.

    Example: ldprecover result suspects week-30 --drift 0.002
    """
    with connected_to(round, url, key) as (client, target):
        result = client.suspects(target.reference, rate=rate, drift=drift)
    if json:
        print_json(result)
        return
    out = console()
    earlier = counted(len(result["earlier"]), "earlier round")
    out.print(f"{target.title}, compared with {earlier} of the series")
    if not result["suspects"]:
        out.print("No item rose by more than noise explains.")
        return
    rows = (
        (row["label"], f"{100 * row['before']:.2f}", f"{100 * row['now']:.2f}", f"{row['z']:.1f}")
        for row in result["suspects"]
    )
    out.print(plain_table("item", "before, %", "now, %", "z", rows=rows, numbers=3))

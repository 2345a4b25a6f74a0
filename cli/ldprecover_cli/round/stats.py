"""`round stats`: submissions that a round counted and rejected."""

from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundArgument, Url, connected_to
from ldprecover_cli.output import console, plain_table, print_json


def stats(
    round: RoundArgument = CURRENT, *, url: Url = DEFAULT_URL, key: Key = None, json: Json = False
) -> None:
    """Show how many submissions a round counted, and rejected by reason.

    The server stores the numbers of rejected submissions every few seconds.

    Example: ldprecover round stats cities
    """
    with connected_to(round, url, key) as (client, target):
        result = client.stats(target.reference)
    if json:
        print_json(result)
        return
    numbers = {
        "reports counted": result["reports"],
        "duplicate submissions": result["duplicates"],
        **{f"rejected submissions: {reason}": n for reason, n in result["refusals"].items()},
    }
    out = console()
    out.print(target.title)
    rows = ((name, f"{number:,}") for name, number in numbers.items())
    out.print(plain_table("", "", rows=rows, numbers=1))

"""`result methods`: the recovery methods of a round."""

from ldprecover_cli.connection import connected_to
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundArgument, Url
from ldprecover_cli.output import console, plain_table, print_json


def methods(
    round: RoundArgument = CURRENT, *, url: Url = DEFAULT_URL, key: Key = None, json: Json = False
) -> None:
    """List the recovery methods, what each needs, and which fit the round.

    Example: ldprecover result methods cities
    """
    with connected_to(round, url, key) as (client, target):
        result = client.methods(target.reference)
    if json:
        print_json(result)
        return
    out, rows = console(), []
    for method in result.methods:
        reason = (method.reason or "").removeprefix(f"{method.name}: ")
        text = method.summary if method.available else f"not for this round: {reason}"
        rows.append((method.name, ", ".join(method.needs), text))
    out.print(f"Recovery methods for {target.title}")
    out.print(plain_table("method", "needs", "", rows=rows))
    out.print("To use one: ldprecover result recover --method NAME")

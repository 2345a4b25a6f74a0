"""`frequencies`: the estimates of a round."""

from ldprecover_cli.item_tables import Top, largest, print_items
from ldprecover_cli.options import DEFAULT_URL, Json, Key, RoundOption, Url, connected
from ldprecover_cli.output import console, counted, plain, print_json


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
        result = client.frequencies(round)
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

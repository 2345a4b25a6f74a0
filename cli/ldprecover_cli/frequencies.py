"""`frequencies`: the estimates of a round."""

from ldprecover_cli.item_tables import Top, bar, bar_width, largest, print_rest
from ldprecover_cli.options import DEFAULT_URL, Json, Key, RoundOption, Url, connected
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
    table = plain_table("item", "", "percent", "± s.e.", numbers=2)
    chosen = largest(shares, top)
    canaries = result.get("canaries", ())
    labels = [result["items"][i] + (" (canary)" if i in canaries else "") for i in chosen]
    width = bar_width(out, labels, beside=19)
    for i, label in zip(chosen, labels, strict=True):
        cell = bar(shares[i], max(shares), width, ascii_only=out.options.ascii_only)
        error = result["standard_errors"][i]
        table.add_row(
            plain(label), f"{cell:<{width}}", f"{100 * shares[i]:.2f}", f"{100 * error:.2f}"
        )
    out.print(table)
    print_rest(out, len(shares), top)
    out.print(f"Sum of all estimates: {result['sum']:.3f}; 1 is expected of honest reports.")

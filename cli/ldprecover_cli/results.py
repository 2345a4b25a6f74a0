"""`frequencies` and `recover`: what a round's reports say, and what recovery makes of them."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ldprecover_cli.failures import check_items
from ldprecover_cli.options import DEFAULT_URL, Json, Key, RoundOption, Url, connected
from ldprecover_cli.output import bar, console, counted, plain, plain_table, print_json

__all__ = ["add_to"]

_BAR = 24

Top = Annotated[int, typer.Option("--top", min=1, help="Show this many items, the most frequent first.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(frequencies)
    app.command()(recover)


def frequencies(
    *,
    round: RoundOption = "current",
    top: Top = 20,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show a round's estimated frequencies: unbiased, never clipped, each with its standard error.

    Example: ldprecover frequencies --round cities --top 10
    """
    with connected(url, key, round=round) as server:
        answer = server.frequencies(round)
    if json:
        print_json(answer)
        return
    out = console()
    out.print(f"{counted(answer['n'], 'report')}, {plain(answer['protocol'])}, epsilon {answer['epsilon']:g}")
    if not answer["n"]:
        out.print("No estimates yet: they need reports.")
        return
    shares = answer["frequencies"]
    table = plain_table("item", "", "percent", "± s.e.", numbers=2)
    for i in _largest(shares, top):
        drawn = bar(shares[i], max(shares), _BAR, ascii_only=out.options.ascii_only)
        error = answer["standard_errors"][i]
        table.add_row(plain(answer["items"][i]), f"{drawn:<{_BAR}}", f"{100 * shares[i]:.2f}", f"{100 * error:.2f}")
    out.print(table)
    _count_the_rest(out, len(shares), top)
    out.print(f"Sum of all estimates: {answer['sum']:.3f}; 1 is expected of honest reports.")


def recover(
    *,
    round: RoundOption = "current",
    target: Annotated[
        list[str] | None,
        typer.Option(help="An item known to be attacked; give it once for each. With any, it is LDPRecover*."),
    ] = None,
    eta: Annotated[float, typer.Option(help="Assumed malicious users per genuine one, m/n, 0 to 10.")] = 0.2,
    method: Annotated[str, typer.Option(help="ldprecover, or norm-sub: projection alone.")] = "ldprecover",
    malicious_model: Annotated[
        str, typer.Option(help="With targets: paper, or exact for the corrected algebra.")
    ] = "paper",
    top: Top = 20,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Recover a round's frequencies from poisoned reports.

    The result is a distribution; the notes say what it is worth.

    Example: ldprecover recover --round cities --target "Denver, CO" --target "Reno, NV"
    """
    with connected(url, key, round=round) as server:
        if target:
            check_items(target, server.parameters(round).parameters.items)
        answer = server.recover(round, eta=eta, targets=target or [], method=method, malicious_model=malicious_model)
    if json:
        print_json(answer)
        return
    out = console()
    star = "*" if answer["targets"] else ""
    out.print(f"{counted(answer['n'], 'report')}, {plain(answer['method'])}{star}, eta {answer['eta']:g}")
    poisoned, recovered, targets = answer["poisoned"], answer["recovered"], set(answer["targets"])
    table = plain_table("item", "", "recovered, %", "poisoned, %", numbers=2)
    chosen = _largest(recovered, top)
    for i in [*chosen, *sorted(targets.difference(chosen))]:
        drawn = bar(recovered[i], max(recovered), _BAR, ascii_only=out.options.ascii_only)
        name = f"{answer['items'][i]} (target)" if i in targets else answer["items"][i]
        table.add_row(plain(name), f"{drawn:<{_BAR}}", f"{100 * recovered[i]:.2f}", f"{100 * poisoned[i]:.2f}")
    out.print(table)
    _count_the_rest(out, len(recovered), top)
    for said in answer.get("notes") or []:
        out.print(f"Note: {plain(str(said))}")


def _largest(values: Sequence[float], top: int) -> list[int]:
    return sorted(range(len(values)), key=lambda i: -values[i])[:top]


def _count_the_rest(out: Any, items: int, top: int) -> None:
    if items > top:
        out.print(f"… and {items - top:,} more items (--top shows more, --json all).")

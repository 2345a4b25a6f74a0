"""`frequencies` and `recover`: what a round's reports say, and what recovery makes of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli.conclusions import interval, sentences
from ldprecover_cli.errors import UsageError, check_items
from ldprecover_cli.options import (
    DEFAULT_URL,
    Eta,
    History,
    Json,
    Key,
    MaliciousModel,
    MethodOptions,
    RecoveryMethod,
    RoundOption,
    SupportFile,
    Url,
    connected,
    eta_of,
    method_options,
    support_of,
)
from ldprecover_cli.output import bar, console, counted, plain, plain_table, print_json

if TYPE_CHECKING:
    from rich.console import Console

_BAR = 24

Top = Annotated[
    int, typer.Option("--top", min=1, help="Show this many items, the most frequent first.")
]


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
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.frequencies(round)
    if json:
        print_json(answer)
        return
    out = console()
    out.print(
        f"{counted(answer['n'], 'report')}, {plain(answer['protocol'])}, epsilon "
        f"{answer['epsilon']:g}"
    )
    if aside := answer.get("quarantined"):
        set_aside = counted(aside["sizes"] + (aside["seeds"] or 0), "report")
        out.print(f"{set_aside} set aside as no honest user's, and not counted.")
    if not answer["n"]:
        out.print("No estimates yet: they need reports.")
        return
    shares = answer["frequencies"]
    table = plain_table("item", "", "percent", "± s.e.", numbers=2)
    chosen = _largest(shares, top)
    canaries = answer.get("canaries", ())
    labels = [answer["items"][i] + (" (canary)" if i in canaries else "") for i in chosen]
    width = _bar_width(out, labels, beside=19)
    for i, label in zip(chosen, labels, strict=True):
        drawn = bar(shares[i], max(shares), width, ascii_only=out.options.ascii_only)
        error = answer["standard_errors"][i]
        table.add_row(
            plain(label), f"{drawn:<{width}}", f"{100 * shares[i]:.2f}", f"{100 * error:.2f}"
        )
    out.print(table)
    _count_the_rest(out, len(shares), top)
    out.print(f"Sum of all estimates: {answer['sum']:.3f}; 1 is expected of honest reports.")


def recover(
    *,
    round: RoundOption = "current",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="An item known to be attacked; give it once for each. With any, it is LDPRecover*."
        ),
    ] = None,
    infer_targets: Annotated[
        bool,
        typer.Option("--infer-targets", help="Take for targets what `ldprecover suspects` shows."),
    ] = False,
    eta: Eta = "0.2",
    method: RecoveryMethod = "ldprecover",
    option: MethodOptions = None,
    malicious_model: MaliciousModel = "paper",
    support: SupportFile = None,
    history: History = None,
    background: Annotated[
        bool,
        typer.Option(
            "--background", help="Have the server work it out, and say how to ask for it."
        ),
    ] = False,
    job: Annotated[
        str | None,
        typer.Option(help="Wait for a recovery that was begun with --background.", metavar="JOB"),
    ] = None,
    top: Top = 20,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Recover a round's frequencies from poisoned reports.

    The result is a distribution; the notes say what it is worth.

    Example: ldprecover recover --round cities --target "Denver, CO" --target "Reno, NV"

    Example: ldprecover recover --round cities --method unmix --history cities-in-may

    Example: ldprecover recover --round cities --method fiad --option least=3

    Example: ldprecover recover --round cities --method k-means --background
    """
    if target and infer_targets:
        raise UsageError("give either --target or --infer-targets")
    if job is not None and background:
        raise UsageError("give either --background or --job")
    options, shares = method_options(option), support_of(support)
    with connected(url, key, scope="analyst", round=round, others=history or ()) as client:
        if target:
            check_items(target, client.parameters(round).parameters.items)
        fields: dict[str, Any] = {
            "eta": eta_of(eta),
            "targets": "infer" if infer_targets else target or [],
            "method": method,
            "malicious_model": malicious_model,
            "support": shares,
            "options": options,
        }
        if history:
            fields["history"] = history
        if job is not None:
            answer = client.job(round, job).wait()
        elif background:
            id_ = client.parameters(round).id  # another round may be the current one by then
            begun = client.start_recovery(id_, **fields)
            if not begun.is_over:
                _show_begun(begun.id, id_, json=json)
                return
            answer = begun.wait()
        else:
            answer = client.recover(round, **fields)
    if json:
        print_json(answer)
    else:
        _show_recovery(answer, top)


def _show_recovery(answer: Mapping[str, Any], top: int) -> None:
    out = console()
    star = "*" if answer["targets"] else ""
    out.print(
        f"{counted(answer['n'], 'report')}, {plain(answer['method'])}{star}, eta {answer['eta']:g}"
    )
    poisoned, recovered, targets = answer["poisoned"], answer["recovered"], set(answer["targets"])
    concluded = answer.get("conclusions") or {}
    with_intervals = concluded.get("lower") is not None and concluded.get("upper") is not None
    middle = ("95 % interval",) if with_intervals else ()
    table = plain_table("item", "", "recovered, %", *middle, "poisoned, %", numbers=2 + len(middle))
    chosen = _largest(recovered, top)
    chosen += sorted(targets.difference(chosen))
    names = {
        i: f"{answer['items'][i]} (target)" if i in targets else answer["items"][i] for i in chosen
    }
    width = _bar_width(out, names.values(), beside=29 + 18 * with_intervals)
    for i, name in names.items():
        drawn = bar(recovered[i], max(recovered), width, ascii_only=out.options.ascii_only)
        between = (interval(concluded, i),) if with_intervals else ()
        numbers = (f"{100 * recovered[i]:.2f}", *between, f"{100 * poisoned[i]:.2f}")
        table.add_row(plain(name), f"{drawn:<{width}}", *numbers)
    out.print(table)
    _count_the_rest(out, len(recovered), top)
    for said in sentences(concluded) if concluded else ():
        out.print(plain(said))
    for said in answer.get("notes") or []:
        out.print(f"Note: {plain(str(said))}")


def _show_begun(job: str, round: str, *, json: bool) -> None:
    if json:
        print_json({"job": job, "round": round})
    else:
        console().print(
            f"Begun. `ldprecover recover --round {plain(round)} --job {job}` waits for it and "
            "shows it."
        )


def _bar_width(out: "Console", names: Iterable[str], *, beside: int) -> int:
    """Return how wide bars can be between names and what is `beside` them; 0 where a terminal is
    too narrow.
    """
    return max(0, min(_BAR, out.width - max(map(len, names)) - 2 - beside))


def _largest(values: Sequence[float], top: int) -> list[int]:
    return sorted(range(len(values)), key=lambda i: -values[i])[:top]


def _count_the_rest(out: Any, items: int, top: int) -> None:
    if items > top:
        out.print(f"… and {items - top:,} more items (--top shows more, --json all).")

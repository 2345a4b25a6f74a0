"""`result recover`: a round's frequencies, recovered from poisoned reports."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover.sentences import counted
from ldprecover_cli import completion
from ldprecover_cli.connection import connected_to
from ldprecover_cli.errors import check_items
from ldprecover_cli.item_tables import IN_ORDER, Top, noise_note, print_items, to_show
from ldprecover_cli.option_values import method_options, number_or_text, support_of
from ldprecover_cli.options import (
    CURRENT,
    DEFAULT_URL,
    Canaries,
    Eta,
    Json,
    Key,
    KnownTargets,
    MaliciousModel,
    MethodOptions,
    RecoveryMethod,
    RoundOrFormArgument,
    SupportFile,
    Url,
    Window,
)
from ldprecover_cli.output import console, plain, print_head
from ldprecover_cli.result.questions import show_results
from ldprecover_cli.result.table_files import TableFile

if TYPE_CHECKING:
    from ldprecover_client import Recovered

_History = Annotated[
    list[str] | None,
    Option(
        "--history",
        help="A closed round over the same items that is known to be clean, or 'window before', "
        "which is of its series; repeat for several. No other round is used.",
        metavar="ROUND",
        autocompletion=completion.rounds,
    ),
]


def recover(
    round: RoundOrFormArgument = CURRENT,
    *,
    target: KnownTargets = None,
    eta: Eta = "0.2",
    method: RecoveryMethod = "auto",
    option: MethodOptions = None,
    malicious_model: MaliciousModel = "paper",
    support: SupportFile = None,
    history: _History = None,
    canary: Canaries = None,
    window: Window = 1,
    top: Top = 20,
    output: TableFile = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Correct the frequencies for malicious reports.

    The result is a distribution; the notes state its limits. A method that states its uncertainty
    also shows the 95 % interval of each item.

    Example: ldprecover result recover cities

    Example: ldprecover result recover cities --method ldprecover --target "Denver, CO"

    Example: ldprecover result recover cities --method unmix --history cities-in-may

    Example: ldprecover result recover cities --method fiad --option least=3

    Example: ldprecover result recover cities --output cities.parquet
    """
    options, shares = method_options(option), support_of(support)
    single = {"--target": target, "--support": support, "--history": history, "--canary": canary}
    of_one = next((name for name, value in single.items() if value), None)
    with connected_to(round, url, key) as (client, chosen):

        def recovered(round: str) -> "Recovered":
            if target or canary:
                items = client.parameters(round).parameters.items
                check_items([*(target or ()), *(canary or ())], items, round)
            return client.recover(
                round,
                eta=number_or_text(eta),
                targets=target or [],
                method=method,
                malicious_model=malicious_model,
                support=shares,
                options=options,
                history=history or [],
                canaries=canary or [],
                window=window,
            )

        show = partial(_show_recovery, top=top)
        show_results(client, chosen, recovered, show, of_one=of_one, output=output, json=json)


def _show_recovery(result: "Recovered", title: str, top: int) -> None:
    out = console()
    star = "*" if result.targets else ""
    by_method = f"{plain(result.method)}{star}, eta {result.eta:.3g}"
    print_head(out, f"{title}: {counted(result.n, 'report')}, {by_method}", result)
    noise = noise_note(result.notes)
    if noise is not None:
        out.print(f"Note: {plain(noise)}{IN_ORDER}")
    poisoned, recovered, targets = result.poisoned, result.recovered, set(result.targets)
    conclusions = result.conclusions
    low, high = (conclusions.lower, conclusions.upper) if conclusions else (None, None)
    columns: dict[str, Callable[[int], str]] = {
        "recovered, %": lambda i: f"{100 * recovered[i]:.2f}"
    }
    if low is not None and high is not None:
        columns["95 % interval"] = lambda i: f"{100 * low[i]:.2f} to {100 * high[i]:.2f}"
    columns["poisoned, %"] = lambda i: f"{100 * poisoned[i]:.2f}"
    chosen = to_show(recovered, top, result.notes)
    names = {
        i: result.items[i] + (" (target)" if i in targets else "")
        for i in (*chosen, *sorted(targets.difference(chosen)))
    }
    print_items(out, names, recovered, columns, beside=29 + 18 * (len(columns) - 2), top=top)
    if conclusions:
        for sentence in conclusions.sentences:
            out.print(plain(sentence))
        if conclusions.attack == "cannot_be_seen":
            out.print(
                "`ldprecover result certify --malicious-share 0.05` says what 5 % of malicious "
                "reports could do at most."
            )
    for note in result.notes:
        if note != noise:
            out.print(f"Note: {plain(note)}")

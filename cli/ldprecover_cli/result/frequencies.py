"""`result frequencies`: the unbiased estimates of a round, or of all rounds of a form."""

from functools import partial
from typing import TYPE_CHECKING

from ldprecover.sentences import counted
from ldprecover_cli.connection import connected_to
from ldprecover_cli.item_tables import IN_ORDER, WIDE, Top, print_items, to_show
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundOrFormArgument, Url, Window
from ldprecover_cli.output import console, plain, print_head
from ldprecover_cli.result.questions import show_results
from ldprecover_cli.result.table_files import TableFile

if TYPE_CHECKING:
    from ldprecover_client import Frequencies


def frequencies(
    round: RoundOrFormArgument = CURRENT,
    *,
    window: Window = 1,
    top: Top = 20,
    output: TableFile = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show the frequencies as reported, each with half its 95 % interval.

    They are unbiased and not clipped. Malicious reports are in them: `ldprecover result recover`
    corrects them.

    Example: ldprecover result frequencies cities --top 10

    Example: ldprecover result frequencies cities --output cities.csv
    """
    with connected_to(round, url, key) as (client, target):
        read = partial(client.frequencies, window=window)
        show = partial(_show_frequencies, top=top)
        show_results(client, target, read, show, output=output, json=json)


def _show_frequencies(result: "Frequencies", title: str, top: int) -> None:
    out = console()
    of_round = f"{plain(result.protocol)}, epsilon {result.epsilon:g}"
    print_head(out, f"{title}: {counted(result.n, 'report')}, {of_round}", result)
    shares, errors = result.frequencies, result.standard_errors
    if shares is None or errors is None or result.sum is None:
        out.print("No estimates yet: the round has no reports.")
        return
    for note in result.notes:
        out.print(f"Note: {plain(note)}{IN_ORDER}")
    if mean := result.mean:
        interval = f"{mean.low:.4g} to {mean.high:.4g}"
        out.print(f"Mean of the users' numbers: {mean.value:.4g} (95 %: {interval}).")
    print_items(
        out,
        {i: result.items[i] for i in to_show(shares, top, result.notes)},
        shares,
        {
            "percent": lambda i: f"{100 * shares[i]:.2f}",
            "± 95 %": lambda i: f"{100 * WIDE * errors[i]:.2f}",
        },
        beside=19,
        top=top,
    )
    total, error = 100 * result.sum, result.sum_standard_error
    of_error = "" if error is None else f" (standard error {100 * error:.3g} points)"
    out.print(f"Sum of all estimates: {total:.1f} %; of honest reports 100 %{of_error}.")

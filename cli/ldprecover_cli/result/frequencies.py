"""`result frequencies`: a round's unbiased estimates."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover_cli.errors import UsageError, file_errors
from ldprecover_cli.item_tables import Top, print_items, to_show
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundArgument, Url, connected_to
from ldprecover_cli.output import console, counted, percent, plain, print_json, print_question

if TYPE_CHECKING:
    from ldprecover_client import Frequencies

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def frequencies(
    round: RoundArgument = CURRENT,
    *,
    top: Top = 20,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="A new CSV file for all items.", metavar="FILE.csv"),
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show the frequencies as reported, each with its standard error.

    They are unbiased and not clipped. Fake reports are in them: `ldprecover result recover`
    corrects them.

    Example: ldprecover result frequencies cities --top 10

    Example: ldprecover result frequencies cities --output cities.csv
    """
    if output is not None and output.suffix != ".csv":
        raise UsageError(f"--output takes a file that ends in .csv, not {output}")
    with connected_to(round, url, key) as (client, target):
        result = client.frequencies(target.reference)
    if output is not None:
        _write(result, output)
    if json:
        print_json(result)
        return
    out = console()
    out.print(
        f"{target.title}: {counted(result.n, 'report')}, {plain(result.protocol)}, epsilon "
        f"{result.epsilon:g}"
    )
    print_question(out, result.question)
    shares, errors = result.frequencies, result.standard_errors
    if shares is None or errors is None or result.sum is None:
        out.print("No estimates yet: the round has no reports.")
        return
    for note in result.notes:
        out.print(f"Note: {plain(note)}")
    if mean := result.mean:
        interval = f"{mean.low:.4g} to {mean.high:.4g}"
        out.print(f"Mean of the users' numbers: {mean.value:.4g} (95 %: {interval}).")
    print_items(
        out,
        {i: result.items[i] for i in to_show(shares, top, result.notes)},
        shares,
        {
            "percent": lambda i: f"{100 * shares[i]:.2f}",
            "± s.e.": lambda i: f"{100 * errors[i]:.2f}",
        },
        beside=19,
        top=top,
    )
    error = result.sum_standard_error
    of_error = "" if error is None else f" (standard error {100 * error:.3g} points)"
    out.print(f"Sum of all estimates: {percent(result.sum)}; of honest reports 100 %{of_error}.")


def _write(result: "Frequencies", output: Path) -> None:
    """Write the columns of the server's CSV, with a byte order mark for spreadsheets.

    A label that a spreadsheet would run as a formula begins with an apostrophe.
    """
    missing = [""] * len(result.items)
    labels = (f"'{each}" if each.startswith(_FORMULA_STARTS) else each for each in result.items)
    shares, errors = (
        missing if column is None else column.tolist()
        for column in (result.frequencies, result.standard_errors)
    )
    rows = zip(labels, range(len(missing)), result.counts.tolist(), shares, errors, strict=True)
    with file_errors("write", output), output.open("x", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(("item", "index", "support", "frequency", "standard_error"))
        writer.writerows(rows)

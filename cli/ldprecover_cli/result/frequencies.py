"""`result frequencies`: a round's unbiased estimates."""

from ldprecover_cli.item_tables import Top, print_items, to_show
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, Key, RoundArgument, Url, connected_to
from ldprecover_cli.output import console, counted, percent, plain, print_json, print_question
from ldprecover_cli.result.table_files import TableFile, check_table_file, write_table


def frequencies(
    round: RoundArgument = CURRENT,
    *,
    top: Top = 20,
    output: TableFile = None,
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
    check_table_file(output)
    with connected_to(round, url, key) as (client, target):
        result = client.frequencies(target.reference)
    if output is not None:
        write_table(output, result.columns)
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

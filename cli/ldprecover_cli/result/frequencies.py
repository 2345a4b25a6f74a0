"""`result frequencies`: the unbiased estimates of a round, or of all rounds of a form."""

from ldprecover.sentences import counted
from ldprecover_cli.connection import connected_to
from ldprecover_cli.errors import UsageError
from ldprecover_cli.item_tables import Top, print_items, to_show
from ldprecover_cli.options import CURRENT, DEFAULT_URL, IsForm, Json, Key, RoundArgument, Url
from ldprecover_cli.output import console, plain, print_json, print_question
from ldprecover_cli.result.table_files import TableFile, check_table_file, write_table


def frequencies(
    round: RoundArgument = CURRENT,
    *,
    form: IsForm = False,
    top: Top = 20,
    output: TableFile = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show the frequencies as reported, each with its standard error.

    They are unbiased and not clipped. Malicious reports are in them: `ldprecover result recover`
    corrects them.

    Example: ldprecover result frequencies cities --top 10

    Example: ldprecover result frequencies cities --output cities.csv

    Example: ldprecover result frequencies usage --form --output usage.csv
    """
    check_table_file(output)
    if form and not (output or json):
        raise UsageError("--form needs --output for the table of all questions, or --json")
    with connected_to(round, url, key) as (client, target):
        rounds = [each.id for each in client.form(round).rounds] if form else [target.reference]
        results = [*map(client.frequencies, rounds)]
    result = results[0]
    if output is not None:
        questions = [each.question for each in results for _ in each.items]
        tables = {
            name: [cell for each in results for cell in each.columns[name]]
            for name in result.columns
        }
        write_table(output, {**({"question": questions} if form else {}), **tables})
    if json:
        print_json({"rounds": results} if form else result)
    if json or form:
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
    total, error = 100 * result.sum, result.sum_standard_error
    of_error = "" if error is None else f" (standard error {100 * error:.3g} points)"
    out.print(f"Sum of all estimates: {total:.1f} %; of honest reports 100 %{of_error}.")

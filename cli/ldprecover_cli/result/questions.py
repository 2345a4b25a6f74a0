"""The results of a round, or of every question of a form."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ldprecover.sentences import counted
from ldprecover_cli.connection import ChosenRound, round_or_form
from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cli.output import console, plain, print_json
from ldprecover_cli.result.table_files import columns_of, write_table

if TYPE_CHECKING:
    from ldprecover_client import Changed, Client, Form, Frequencies, Recovered

R = TypeVar("R", "Changed", "Frequencies", "Recovered")


def show_results(
    client: "Client",
    target: ChosenRound,
    result_of: Callable[[str], R],
    show: Callable[[R, str], None],
    *,
    of_one: str | None = None,
    output: Path | None,
    json: bool,
) -> None:
    """Write the results of a round or form to a file; print them as JSON or by `show`.

    Those of a form are one table with the column `question`, and `rounds` of one JSON object.
    Raises UsageError for a form with `of_one`, an option that belongs to one round.
    """
    form, results = _results_of(client, target.reference, result_of, of_one)
    answers = [each for each in results if each is not None]
    if output is not None:
        write_table(output, columns_of(answers, *(["question"] if form else [])))
    if json:
        print_json({"rounds": answers} if form else answers[0])
    elif form is None:
        show(answers[0], target.title)
    else:
        out = console()
        number = counted(len(form.rounds), "question")
        out.print(f"{target.title}: {counted(form.n, 'report')} to {number}, one a person")
        for round, result in zip(form.rounds, results, strict=True):
            out.print()
            if result is None:
                alone = ", and none to compare them with" if round.n else ""
                out.print(f"{plain(round.name)}: {counted(round.n, 'report')}{alone}")
                out.print(f"Question: {plain(round.question or '')}")
            else:
                show(result, plain(round.name))


def _results_of(
    client: "Client", reference: str, result_of: Callable[[str], R], of_one: str | None
) -> tuple["Form | None", list[R | None]]:
    """Return the form, or None for a round, and the result of each round.

    A round of a form without reports has None where `result_of` refuses it. Raises CommandError if
    all have.
    """

    def of_form(reference: str) -> tuple["Form", list[R | None]]:
        form = client.form(reference)
        if of_one:
            name = plain(form.rounds[0].name)
            raise UsageError(f"{of_one} is for one question: name its round, such as {name}")
        return form, [_unless_empty(round.id, result_of) for round in form.rounds]

    def of_round(reference: str) -> tuple[None, list[R | None]]:
        return None, [result_of(reference)]

    form, results = round_or_form(reference, of_round, of_form)
    if not any(results):
        raise CommandError("no question of the form has reports; `ldprecover sim users` makes some")
    return form, results


def _unless_empty(round_id: str, result_of: Callable[[str], R]) -> R | None:
    from ldprecover_client import RefusedError

    try:
        return result_of(round_id)
    except RefusedError as error:
        if error.slug != "no-reports":
            raise
        return None

"""`send value`: one real user's report of one value."""

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ldprecover_cli.connection import connected, round_or_form, titled
from ldprecover_cli.errors import CommandError, UsageError, check_items
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, RoundOrFormArgument, Url
from ldprecover_cli.output import console, joined, plain, print_json
from ldprecover_cli.send.receipts import LedgerFile, ReportKey, receipt_fields, round_name

if TYPE_CHECKING:
    from ldprecover_client import Client, Form


def value(
    value: Annotated[
        str,
        Argument(
            help="The item you hold, by its label in the round; or your number, from -1 to 1. For "
            "a form one for each question, in their order, as 'A;B'.",
            metavar="VALUE",
        ),
    ],
    round: RoundOrFormArgument = CURRENT,
    *,
    max_epsilon: Annotated[
        float | None, Option(help="Largest epsilon of a round to accept; 2 when absent.")
    ] = None,
    max_total_epsilon: Annotated[
        float | None,
        Option(help="Largest epsilon of all rounds together; 4 when absent."),
    ] = None,
    ledger: LedgerFile = None,
    key: ReportKey = None,
    ticket: Annotated[
        str | None, Option(help="A ticket, if the round needs one.", metavar="TICKET")
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Send your own answer to a round or a form, as one real user.

    Of a form the ticket, or this machine, draws the question that is answered.

    Example: ldprecover send value "Denver, CO" cities

    Example: ldprecover send value -- -0.25 moods

    Example: ldprecover send value "Linux;tea" usage
    """
    from ldprecover_client import Form
    from ldprecover_client.errors import UnansweredError, UnknownItemError
    from ldprecover_client.ledger import MAX_TOTAL_EPSILON, Ledger
    from ldprecover_client.reporter import MAX_EPSILON, Reporter

    store = Ledger(
        ledger,
        max_total_epsilon=MAX_TOTAL_EPSILON if max_total_epsilon is None else max_total_epsilon,
    )
    with connected(url, key, scope="report") as client:
        status = round_or_form(round, client.round, client.form)
        # A pending report may have been counted before the round was closed.
        rounds = status.rounds if isinstance(status, Form) else [status]
        if rounds[0].state == "closed" and not store.pending():
            raise CommandError(f"{plain(status.name)} is closed, so nothing was sent or spent")
        limit = MAX_EPSILON if max_epsilon is None else max_epsilon
        options: dict[str, Any] = {"ledger": store, "max_epsilon": limit, "ticket": ticket}
        try:
            if isinstance(status, Form):
                answers = _answers(client, status, value)
                receipt = Reporter(client, form=status, **options).report(answers)
            else:
                receipt = Reporter(client, status, **options).report(value)
        except UnknownItemError:
            if not isinstance(status, Form) and not status.parameters.is_for_numbers:
                check_items([value], status.parameters.items, round)
            raise
        except UnansweredError as error:
            if not store.pending():
                raise
            raise CommandError(
                f"{error}; the report is stored, and `ldprecover send resume` sends it again"
            ) from error
    if json:
        print_json(receipt_fields(receipt))
        return
    resent = " It was an earlier report; the new value was not used." if receipt.resent else ""
    console().print(
        f"Accepted by round {titled(round_name(receipt), round)}: one perturbed report at "
        f"epsilon {receipt.epsilon:g}.{resent} "
        f"Your ledger has spent {store.spent:g} in all."
    )


def _answers(client: "Client", form: "Form", text: str) -> dict[str, str]:
    """Return the value of each question, from values with semicolons between them.

    All are checked, so that an error does not depend on the draw. Raises UsageError.
    """
    values = [part.strip() for part in text.split(";")]
    questions = [each.question or "" for each in form.rounds]
    if len(values) != len(questions):
        raise UsageError(
            f"{plain(form.name)} needs a value for each of its questions, in this order, as 'A;B': "
            f"{joined(questions)}"
        )
    for round, question, value in zip(form.rounds, questions, values, strict=True):
        parameters = client.parameters(round.id).parameters
        if parameters.is_for_numbers:
            continue
        try:
            check_items([value], parameters.items, round.name)
        except UsageError as error:
            raise UsageError(f"{plain(question)} {error}") from None
    return dict(zip(questions, values, strict=True))

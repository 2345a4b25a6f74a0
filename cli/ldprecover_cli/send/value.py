"""`send value`: one real user's report of one value."""

from typing import Annotated

from typer import Argument, Option

from ldprecover_cli.connection import connected, titled
from ldprecover_cli.errors import CommandError, check_items
from ldprecover_cli.options import CURRENT, DEFAULT_URL, Json, RoundArgument, Url
from ldprecover_cli.output import console, plain, print_json
from ldprecover_cli.send.receipts import LedgerFile, ReportKey, receipt_fields, round_name


def value(
    value: Annotated[
        str,
        Argument(
            help="The item you hold, by its label in the round; or your number, from -1 to 1.",
            metavar="VALUE",
        ),
    ],
    round: RoundArgument = CURRENT,
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
    """Send your own answer to a round, as one real user.

    The value is perturbed on this machine, once. Only the perturbed report leaves it.

    Example: ldprecover send value "Denver, CO" cities

    Example: ldprecover send value -- -0.25 moods
    """
    from ldprecover_client.errors import UnansweredError, UnknownItemError
    from ldprecover_client.ledger import MAX_TOTAL_EPSILON, Ledger
    from ldprecover_client.reporter import MAX_EPSILON, Reporter

    store = Ledger(
        ledger,
        max_total_epsilon=MAX_TOTAL_EPSILON if max_total_epsilon is None else max_total_epsilon,
    )
    with connected(url, key, scope="report") as client:
        status = client.round(round)
        # A pending report may have been counted before the round was closed.
        if status.state == "closed" and not store.pending():
            raise CommandError(
                f"round {plain(status.name)} is closed, so nothing was sent or spent"
            )
        limit = MAX_EPSILON if max_epsilon is None else max_epsilon
        reporter = Reporter(client, status, ledger=store, max_epsilon=limit, ticket=ticket)
        try:
            receipt = reporter.report(value)
        except UnknownItemError:
            if not status.parameters.is_for_numbers:
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

"""`send value`: one real user's report of one value."""

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ldprecover_cli.errors import CommandError, UsageError, check_items
from ldprecover_cli.options import (
    CURRENT,
    DEFAULT_URL,
    Json,
    RoundArgument,
    Url,
    connected,
    quick_retries,
    titled,
)
from ldprecover_cli.output import JsonObject, console, plain, print_json
from ldprecover_cli.send.receipts import LedgerFile, ReportKey, receipt_fields, round_name

if TYPE_CHECKING:
    from ldprecover_client import Client


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
    from ldprecover.rounds.means import is_for_numbers
    from ldprecover_client import Ledger, Reporter, UnansweredError, UnknownItemError

    with connected(url, key, scope="report", round=round) as client:
        _check_order(client, value, round)
        reporter = Reporter(
            url,
            round,
            ledger=Ledger(ledger, **_without_none(max_total_epsilon=max_total_epsilon)),
            retries=quick_retries(),
            key=key,
            ticket=ticket,
            **_without_none(max_epsilon=max_epsilon),
        )
        if not reporter.ledger.pending():  # an answer may be missing for a report of before
            status = client.round(round)
            if status.state == "closed":
                raise CommandError(
                    f"round {plain(status.name)} is closed, so nothing was sent or spent"
                )
        try:
            receipt = reporter.report(value)
        except UnknownItemError:
            parameters = client.parameters(round).parameters
            if not is_for_numbers(parameters):
                check_items([value], parameters.items, round)
            raise
        except UnansweredError as error:
            if not reporter.ledger.pending():
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
        f"Your ledger has spent {reporter.ledger.spent:g} in all."
    )


def _check_order(client: "Client", value: str, round: str) -> None:
    """Raise UsageError if the value is called like a round, and the round is not.

    A request for a round that is called like the value would tell the server the value.
    """
    if round == CURRENT:
        return
    references = {reference for each in client.rounds() for reference in (each.id, each.name)}
    if value in references and round not in references:
        raise UsageError(f"{value!r} is a round: give the value first, then the round")


def _without_none(**limits: float | None) -> JsonObject:
    """Return the limits that are not None: the others have defaults."""
    return {name: limit for name, limit in limits.items() if limit is not None}

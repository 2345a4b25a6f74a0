"""`report`: one real user's report of one value."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ldprecover_cli.errors import CommandError, UsageError, check_items
from ldprecover_cli.options import DEFAULT_URL, Json, RoundOption, Url, connected, quick_retries
from ldprecover_cli.output import JsonObject, console, plain, print_json

if TYPE_CHECKING:
    from ldprecover_client import Receipt


def report(
    value: Annotated[
        str | None,
        Argument(
            help="The item you hold, by its label in the round; or your number, from -1 to 1.",
            metavar="VALUE",
        ),
    ] = None,
    *,
    round: RoundOption = "current",
    resume: Annotated[
        bool,
        Option("--resume", help="Send reports without a response again; takes no VALUE."),
    ] = False,
    max_epsilon: Annotated[
        float | None, Option(help="Largest epsilon of a round to accept; 2 when absent.")
    ] = None,
    max_total_epsilon: Annotated[
        float | None,
        Option(help="Largest epsilon of all rounds together; 4 when absent."),
    ] = None,
    ledger: Annotated[
        Path | None,
        Option(
            help="File that records your reports; in your state directory when absent.",
            metavar="FILE",
        ),
    ] = None,
    key: Annotated[
        str | None,
        Option(
            envvar="LDPRECOVER_KEY", help="A report key, if the round needs one.", metavar="KEY"
        ),
    ] = None,
    ticket: Annotated[
        str | None, Option(help="A ticket, if the round needs one.", metavar="TICKET")
    ] = None,
    by_name: Annotated[
        bool,
        Option(
            "--by-name",
            help="Send to the round's name, not its id: for a proxy before several deployments.",
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Report one value as one real user.

    The value is perturbed on this machine, once. Only the perturbed report leaves it.

    Example: ldprecover report "Denver, CO" --round cities

    Example: ldprecover report --round moods -- -0.25
    """
    from ldprecover.rounds.means import is_for_numbers
    from ldprecover_client import Ledger, Reporter, UnansweredError, UnknownItemError

    if (value is None) is not resume:
        raise UsageError(
            "give either the value to report, or --resume to send unanswered reports again"
        )
    if resume and ticket is not None:
        raise UsageError(
            "--resume sends each report under its own ticket: give VALUE and --round with --ticket"
        )
    reporter = Reporter(
        url,
        round,
        ledger=Ledger(ledger, **_without_none(max_total_epsilon=max_total_epsilon)),
        retries=quick_retries(),
        key=key,
        ticket=ticket,
        by_name=by_name and not resume,
        **_without_none(max_epsilon=max_epsilon),
    )
    if value is None:
        receipts = reporter.resume()
        _show_resumed(receipts, json=json)
        if any(receipt.state != "accepted" for receipt in receipts):
            raise CommandError("not every report was accepted")
        return
    with connected(url, key, scope="report", round=round) as client:
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
                f"{error}; the report is stored, and `ldprecover report --resume` sends it again"
            ) from error
    if json:
        print_json(_fields(receipt))
        return
    resent = " It was an earlier report; the new value was not used." if receipt.resent else ""
    console().print(
        f"Accepted by round {_round_name(receipt)}: one perturbed report at epsilon "
        f"{receipt.epsilon:g}.{resent} "
        f"Your ledger has spent {reporter.ledger.spent:g} in all."
    )


def _without_none(**limits: float | None) -> JsonObject:
    """Return the limits that are not None: the others have defaults."""
    return {name: limit for name, limit in limits.items() if limit is not None}


def _fields(receipt: "Receipt") -> JsonObject:
    fields = vars(receipt)
    return {"round": receipt.round_id, "name": receipt.round_name} | {
        name: fields[name] for name in ("epsilon", "state", "resent", "duplicate", "reason")
    }


def _show_resumed(receipts: Sequence["Receipt"], *, json: bool) -> None:
    if json:
        print_json({"resent": [_fields(receipt) for receipt in receipts]})
        return
    if not receipts:
        console().print("Every report in the ledger has a response.")
    for receipt in receipts:
        reason = f": {receipt.reason}" if receipt.reason else ""
        console().print(f"{receipt.state} by round {_round_name(receipt)}{plain(reason)}")


def _round_name(receipt: "Receipt") -> str:
    return plain(receipt.round_name or receipt.round_id)

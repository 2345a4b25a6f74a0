"""`report`: one real user's report of one value."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldprecover_cli.errors import CommandError, UsageError, check_items
from ldprecover_cli.options import DEFAULT_URL, Json, RoundOption, Url, connected, quick_retries
from ldprecover_cli.output import console, plain, print_json

if TYPE_CHECKING:
    from ldprecover_client import Receipt


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def _moved_to_document(file: str | None) -> None:
    if file is not None:
        raise UsageError(
            "report sends a value; to write a document about a round, use `ldprecover document "
            "ROUND --output FILE`"
        )


def report(
    value: Annotated[
        str | None,
        typer.Argument(
            help="The item you hold, by its label in the round; or your number, from -1 to 1.",
            metavar="VALUE",
        ),
    ] = None,
    *,
    round: RoundOption = "current",
    resume: Annotated[
        bool, typer.Option("--resume", help="Send again what was never answered; needs no VALUE.")
    ] = False,
    max_epsilon: Annotated[
        float | None, typer.Option(help="Refuse a round that asks for more; 2 when absent.")
    ] = None,
    max_total_epsilon: Annotated[
        float | None,
        typer.Option(help="Refuse when all rounds together would take more; 4 when absent."),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Where your reports are written down; in your state directory when absent.",
            metavar="FILE",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            envvar="LDPRECOVER_KEY", help="A report key, where the round wants one.", metavar="KEY"
        ),
    ] = None,
    ticket: Annotated[
        str | None, typer.Option(help="A ticket, where the round wants one.", metavar="TICKET")
    ] = None,
    by_name: Annotated[
        bool,
        typer.Option(
            "--by-name",
            help="Send it to the round's name, not its id: behind a proxy to several deployments.",
        ),
    ] = False,
    html: Annotated[
        str | None,
        typer.Option(
            hidden=True,
            help="Former spelling of `ldprecover document`.",
            callback=_moved_to_document,
        ),
    ] = None,
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
            "give the value to report, or --resume to send again what was never answered; not both"
        )
    if resume and ticket is not None:
        raise UsageError(
            "--resume sends each report under its own ticket: to give another, give VALUE and "
            "--round too"
        )
    limits: dict[str, Any] = {} if max_epsilon is None else {"max_epsilon": max_epsilon}
    totals: dict[str, Any] = (
        {} if max_total_epsilon is None else {"max_total_epsilon": max_total_epsilon}
    )
    access: dict[str, Any] = {"key": key, "ticket": ticket, "by_name": by_name and not resume}
    reporter = Reporter(
        url, round, ledger=Ledger(ledger, **totals), retries=quick_retries(), **access, **limits
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
                check_items([value], parameters.items)
            raise
        except UnansweredError as error:
            if not reporter.ledger.pending():
                raise
            raise CommandError(
                f"{error}; the report is written down, and `ldprecover report --resume` sends it "
                "again"
            ) from error
    if json:
        print_json(_fields(receipt))
        return
    again = (
        " It was made before and sent again: the value given now was not used."
        if receipt.resent
        else ""
    )
    console().print(
        f"Accepted by round {_named(receipt)}: one perturbed report at epsilon "
        f"{receipt.epsilon:g}.{again} "
        f"Your ledger has spent {reporter.ledger.spent:g} in all."
    )


def _fields(receipt: "Receipt") -> dict[str, Any]:
    return {
        "round": receipt.round_id,
        "name": receipt.round_name,
        "epsilon": receipt.epsilon,
        "state": receipt.state,
        "resent": receipt.resent,
        "duplicate": receipt.duplicate,
        "reason": receipt.reason,
    }


def _show_resumed(receipts: Sequence["Receipt"], *, json: bool) -> None:
    if json:
        print_json({"resent": [_fields(receipt) for receipt in receipts]})
        return
    if not receipts:
        console().print("Every report in the ledger has its answer.")
    for receipt in receipts:
        reason = f": {receipt.reason}" if receipt.reason else ""
        console().print(f"{receipt.state} by round {_named(receipt)}{plain(reason)}")


def _named(receipt: "Receipt") -> str:
    return plain(receipt.round_name or receipt.round_id)

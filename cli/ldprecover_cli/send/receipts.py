"""Ledger, key and receipts, which the commands of one user share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover_cli.output import JsonObject

if TYPE_CHECKING:
    from ldprecover_client import Receipt

LedgerFile = Annotated[
    Path | None,
    Option(
        "--ledger",
        help="File that records your reports; the one in your state directory when absent.",
        metavar="FILE",
    ),
]
OldLedgerFile = Annotated[
    Path | None,
    Option(
        "--ledger",
        exists=True,
        help="File that recorded your reports; the one in your state directory when absent.",
        metavar="FILE",
    ),
]
ReportKey = Annotated[
    str | None,
    Option(
        "--key",
        envvar="LDPRECOVER_KEY",
        help="A report key, if the round needs one.",
        metavar="KEY",
    ),
]


def receipt_fields(receipt: "Receipt") -> JsonObject:
    """Return a receipt as JSON."""
    fields = vars(receipt)
    return {"round": receipt.round_id, "name": receipt.round_name} | {
        name: fields[name] for name in ("epsilon", "state", "resent", "duplicate", "reason")
    }


def round_name(receipt: "Receipt") -> str:
    """Return the name of a receipt's round, or its id if the ledger has no name."""
    return receipt.round_name or receipt.round_id

"""`send resume`: reports without a response, sent again."""

from ldprecover_cli.errors import CommandError
from ldprecover_cli.options import DEFAULT_URL, Json, Url
from ldprecover_cli.output import console, plain, print_json
from ldprecover_cli.send.receipts import OldLedgerFile, ReportKey, receipt_fields, round_name


def resume(
    *,
    ledger: OldLedgerFile = None,
    key: ReportKey = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Send reports that got no response again.

    Each goes to its own server, with the same bytes and under its own ticket, so none counts twice.

    Example: ldprecover send resume
    """
    from ldprecover_client import Client, Ledger, Reporter
    from ldprecover_client.retries import INTERACTIVE

    with Client(url, key=key, retries=INTERACTIVE) as client:
        receipts = Reporter(client, ledger=Ledger(ledger)).resume()
    if json:
        print_json({"resent": [receipt_fields(receipt) for receipt in receipts]})
    elif not receipts:
        console().print("Every report in the ledger has a response.")
    else:
        for receipt in receipts:
            reason = f": {receipt.reason}" if receipt.reason else ""
            line = f"{receipt.state} by round {round_name(receipt)}{reason}"
            console().print(plain(line))
    if any(receipt.state != "accepted" for receipt in receipts):
        raise CommandError("not every report was accepted")

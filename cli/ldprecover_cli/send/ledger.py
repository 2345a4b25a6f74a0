"""`send ledger`: the reports sent from this machine, and the epsilon they have spent."""

from ldprecover.sentences import counted
from ldprecover_cli.options import Json
from ldprecover_cli.output import console, plain_table, print_json, print_whole
from ldprecover_cli.send.receipts import OldLedgerFile


def ledger(*, ledger: OldLedgerFile = None, json: Json = False) -> None:
    """List the reports sent from this machine, and the epsilon they have spent.

    The ledger contains perturbed reports only, never your values. The command writes nothing and
    contacts no server.

    Example: ldprecover send ledger
    """
    from ldprecover_client import Ledger
    from ldprecover_client.ledger import MAX_TOTAL_EPSILON, default_path

    path = default_path() if ledger is None else ledger
    store = Ledger(path) if path.exists() else None  # opening one would create the file
    entries = () if store is None else store.entries()
    spent = 0.0 if store is None else store.spent
    if json:
        rows = [
            {
                "round": entry.round_id,
                "name": entry.round_name,
                "question": entry.question,
                "server": entry.server_url,
                "epsilon": entry.epsilon,
                "state": entry.state,
                "reason": entry.reason,
            }
            for entry in entries
        ]
        print_json({"ledger": str(path), "reports": rows, "epsilon_spent": spent})
        return
    out = console()
    if not entries:
        out.print(f"No reports were sent from this machine: {path} is empty.", soft_wrap=True)
        return
    cells = (
        (
            entry.round_name or entry.round_id,
            entry.question or "",
            entry.server_url,
            entry.state,
            f"{entry.epsilon:g}",
        )
        for entry in entries
    )
    columns = ("round", "question", "server", "state", "epsilon")
    print_whole(out, plain_table(*columns, rows=cells, numbers=1, no_wrap=24))
    out.print(
        f"{counted(len(entries), 'report')}: epsilon {spent:g} spent in all; the limit is "
        f"{MAX_TOTAL_EPSILON:g} unless --max-total-epsilon changes it.",
        soft_wrap=True,
    )
    if store is not None and (pending := len(store.pending())):
        out.print(
            f"{counted(pending, 'report')} without a response: `ldprecover send resume` sends "
            "them again."
        )

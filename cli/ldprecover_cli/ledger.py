"""`ledger`: what this machine has reported, and what that has cost in epsilon."""

from pathlib import Path
from typing import Annotated

import typer

from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import Json
from ldprecover_cli.output import console, counted, plain, plain_table, print_json


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(ledger)


def ledger(
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            help="The ledger; the one in your state directory when absent.",
            metavar="FILE",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List what you have reported from this machine, and the epsilon that all of it has spent.

    Your values are not in it: it holds perturbed reports alone. Nothing is written and no server is
    asked.

    Example: ldprecover ledger
    """
    from ldprecover_client import Ledger
    from ldprecover_client.ledger import MAX_TOTAL_EPSILON, default_path

    if file is not None and not file.exists():
        raise UsageError(f"there is no ledger {file}")
    path = default_path() if file is None else file
    kept = Ledger(path) if path.exists() else None  # to look must not make one
    entries = () if kept is None else kept.entries()
    spent = 0.0 if kept is None else kept.spent
    if json:
        rows = [
            {
                "round": entry.round_id,
                "name": entry.round_name,
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
        out.print(f"Nothing was reported from here yet: {path} holds no report.", soft_wrap=True)
        return
    table = plain_table("round", "server", "state", "epsilon", numbers=1)
    for entry in entries:
        name = entry.round_name or entry.round_id
        table.add_row(*map(plain, (name, entry.server_url, entry.state)), f"{entry.epsilon:g}")
    out.print(table)
    out.print(
        f"{counted(len(entries), 'report')}: epsilon {spent:g} spent in all, of "
        f"{MAX_TOTAL_EPSILON:g} unless "
        "--max-total-epsilon says otherwise.",
        soft_wrap=True,
    )
    if kept is not None and (pending := len(kept.pending())):
        out.print(
            f"{counted(pending, 'report')} without an answer: `ldprecover report --resume` sends "
            "again."
        )

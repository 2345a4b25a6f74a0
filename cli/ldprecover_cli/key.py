"""`key`: make, list and revoke access keys on the machine with the database."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from ldprecover_cli.options import DatabaseUrl, Json
from ldprecover_cli.output import console, note, plain, plain_table, print_json

app = typer.Typer(no_args_is_help=True)


@app.callback()
def keys() -> None:
    """Make, list and revoke access keys on the machine with the database.

    The server may be running.

    Example: ldprecover key create --database-url sqlite:///ldprecover.db
    """


@app.command("create")
def create_key(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the key; made from the scope when absent.", metavar="NAME"),
    ] = None,
    *,
    scope: Annotated[
        Literal["admin", "analyst", "report"],
        typer.Option(help="report: submit; analyst: read protected rounds; admin: everything."),
    ] = "admin",
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the key to this new file, which only you can read.", metavar="FILE"
        ),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a key and print it.

    It is shown only once: the database stores only its hash.

    Example: ldprecover key create --database-url sqlite:///ldprecover.db

    Example: ldprecover key create app --scope report --output report.key
    """
    from ldprecover_cli.serve import new_key

    if output is None:
        key, description = new_key(scope=scope, name=name, database_url=database_url)
        note(description)
        typer.echo(key)
        return
    # Open the file first: a key that cannot be written would be lost, and still be valid.
    with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        try:
            key, description = new_key(scope=scope, name=name, database_url=database_url)
        except BaseException:
            output.unlink()
            raise
        file.write(key + "\n")
    note(f"{description}, in {output}")


@app.command("list")
def list_keys(*, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """List the names of keys; keys themselves are never shown again.

    Example: ldprecover key list
    """
    from ldprecover_cli.serve import stored_keys

    all_keys = stored_keys(database_url=database_url)
    if json:
        rows = [
            {"name": k.name, "scope": k.scope, "created": k.created_at, "revoked": k.revoked_at}
            for k in all_keys
        ]
        print_json({"keys": rows})
        return
    if not all_keys:
        console().print("No keys yet. Make one with: ldprecover key create")
        return
    table = plain_table("name", "scope", "created", "revoked")
    for key in all_keys:
        table.add_row(*map(plain, (key.name, key.scope, key.created_at, key.revoked_at or "")))
    console().print(table)


@app.command("revoke")
def revoke_key(
    name: Annotated[
        str, typer.Argument(help="Name of the key, as in `ldprecover key list`.", metavar="NAME")
    ],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a key permanently: no server accepts it any more.

    Example: ldprecover key revoke app
    """
    from ldprecover_cli.serve import end_key

    end_key(name, database_url=database_url)
    note(f"The key {name} is revoked.")

"""`key`: make, list and revoke access keys, on the machine that has the database."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from ldprecover_cli.options import Json
from ldprecover_cli.output import console, note, plain, plain_table, print_json

app = typer.Typer(no_args_is_help=True)

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="LDPRECOVER_DATABASE_URL", help="The server's database; the same default as `serve`."
    ),
]


@app.callback()
def keys() -> None:
    """Make, list and revoke access keys on the machine that has the database.

    The server may be running.

    Example: ldprecover key create --database-url sqlite:///ldprecover.db
    """


@app.command("create")
def create_key(
    name: Annotated[
        str | None,
        typer.Argument(help="Name to know it by; made from the scope when absent.", metavar="NAME"),
    ] = None,
    *,
    scope: Annotated[
        Literal["admin", "analyst", "report"],
        typer.Option(
            help="report submits; analyst reads rounds that want a key; admin does everything."
        ),
    ] = "admin",
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write it to a new file that you alone can read, instead.", metavar="FILE"
        ),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make another key and print it, this once: the database keeps only its hash.

    Example: ldprecover key create --database-url sqlite:///ldprecover.db

    Example: ldprecover key create crowd --scope report --output report.key
    """
    from ldprecover_cli.serve import new_key

    if output is None:
        key, where = new_key(scope=scope, name=name, database_url=database_url)
        note(where)
        typer.echo(key)
        return
    # The file comes first: a key that cannot be written down would be lost, and still be valid.
    with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        try:
            key, where = new_key(scope=scope, name=name, database_url=database_url)
        except BaseException:
            output.unlink()
            raise
        file.write(key + "\n")
    note(f"{where}, in {output}")


@app.command("list")
def list_keys(*, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """List keys by name; the keys themselves are never shown again.

    Example: ldprecover key list
    """
    from ldprecover_cli.serve import all_keys

    found = all_keys(database_url=database_url)
    if json:
        rows = [
            {"name": k.name, "scope": k.scope, "created": k.created_at, "revoked": k.revoked_at}
            for k in found
        ]
        print_json({"keys": rows})
        return
    if not found:
        console().print("No keys yet. Make one with: ldprecover key create")
        return
    table = plain_table("name", "scope", "created", "revoked")
    for key in found:
        table.add_row(*map(plain, (key.name, key.scope, key.created_at, key.revoked_at or "")))
    console().print(table)


@app.command("revoke")
def revoke_key(
    name: Annotated[
        str, typer.Argument(help="Its name, as `ldprecover key list` has it.", metavar="NAME")
    ],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a key for good: no server takes it any more.

    Example: ldprecover key revoke crowd
    """
    from ldprecover_cli.serve import end_key

    end_key(name, database_url=database_url)
    note(f"The key {name} is revoked.")

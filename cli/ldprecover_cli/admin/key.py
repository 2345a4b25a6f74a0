"""`admin key`: access keys in the server's database."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ldprecover_cli.errors import new_file
from ldprecover_cli.grammar import group
from ldprecover_cli.options import DatabaseUrl, Json, Scope
from ldprecover_cli.output import console, note, plain_table, print_json


def create_key(
    name: Annotated[
        str | None,
        Argument(help="Name of the key; made from the scope when absent.", metavar="NAME"),
    ] = None,
    *,
    scope: Annotated[
        Scope,
        Option(help="report: submit; analyst: read protected rounds; admin: everything."),
    ] = "admin",
    output: Annotated[
        Path | None,
        Option(help="Write the key to this new file, which only you can read.", metavar="FILE"),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a key and print it.

    It is shown only once: the database stores only its hash.

    Example: ldprecover admin key create --database-url sqlite:///ldprecover.db

    Example: ldprecover admin key create app --scope report --output report.key
    """
    import ldprecover_server
    from ldprecover_cli.serve import database, database_file

    with database(database_url) as settings, ExitStack() as stack:
        # Open the file first: a key that cannot be written would be lost, and still be valid.
        file = None if output is None else stack.enter_context(new_file(output, 0o600))
        key = ldprecover_server.create_key(settings, scope=scope, name=name)
        typer.echo(key, file)
    article = "A" if scope == "report" else "An"
    place = "" if output is None else f", in {output}"
    note(f"{article} {scope} key of {database_file(settings) or 'the database'}{place}")


def list_keys(*, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """List the names of keys; keys themselves are never shown again.

    Example: ldprecover admin key list
    """
    import ldprecover_server
    from ldprecover_cli.serve import database

    with database(database_url) as settings:
        all_keys = ldprecover_server.list_keys(settings)
    if json:
        rows = [
            {"name": k.name, "scope": k.scope, "created": k.created_at, "revoked": k.revoked_at}
            for k in all_keys
        ]
        print_json({"keys": rows})
        return
    if not all_keys:
        console().print("No keys yet. Make one with: ldprecover admin key create")
        return
    cells = ((k.name, k.scope, k.created_at, k.revoked_at or "") for k in all_keys)
    console().print(plain_table("name", "scope", "created", "revoked", rows=cells))


def revoke_key(
    name: Annotated[
        str, Argument(help="Name of the key, as in `ldprecover admin key list`.", metavar="NAME")
    ],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a key permanently: no server accepts it any more.

    Example: ldprecover admin key revoke app
    """
    import ldprecover_server
    from ldprecover_cli.serve import database

    with database(database_url) as settings:
        ldprecover_server.revoke_key(settings, name)
    note(f"The key {name} is revoked.")


app = group(
    "key",
    """Make, list and revoke access keys.

    Example: ldprecover admin key create --database-url sqlite:///ldprecover.db
    """,
    create=create_key,
    list=list_keys,
    revoke=revoke_key,
)

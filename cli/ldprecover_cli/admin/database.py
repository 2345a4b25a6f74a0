"""`migrate`, `check`, `quarantine` and `key`: commands on the server's database."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer
from typer import Argument, Option

from ldprecover_cli.errors import file_errors
from ldprecover_cli.options import DatabaseUrl, Json, RoundArgument
from ldprecover_cli.output import console, note, plain_table, print_json


def migrate(*, database_url: DatabaseUrl = None) -> None:
    """Migrate a database to the schema of this version.

    On SQLite the server makes the file, and migrates it when it starts. On Postgres it starts only
    with this schema.

    Example: ldprecover migrate --database-url postgresql+psycopg://ldprecover@db/ldprecover
    """
    import ldprecover_server
    from ldprecover_cli.serve import database

    with database(database_url) as settings:
        revisions = ldprecover_server.migrate(settings)
    note(
        f"Applied the revisions {', '.join(revisions)}."
        if revisions
        else "The schema is up to date."
    )


def check(*, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """Check that counts match reports and reports match keys. Exit code 1 if not.

    It counts every stored report again and writes nothing; the server may be running.

    Example: ldprecover check --database-url sqlite:///ldprecover.db
    """
    import ldprecover_server
    from ldprecover_cli.serve import database

    with database(database_url) as settings:
        findings = ldprecover_server.check(settings)
    if json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    elif findings:
        rows = ((f.round, f.what, f"{f.expected:,}", f"{f.found:,}") for f in findings)
        columns = ("round", "what", "expected", "found")
        console().print(plain_table(*columns, rows=rows, numbers=2))
    else:
        note("The database is consistent.")
    if any(finding.fault for finding in findings):
        raise typer.Exit(1)


def quarantine(round: RoundArgument = "current", *, database_url: DatabaseUrl = None) -> None:
    """Print a round's quarantined reports, a line of JSON for each hour and reason.

    It reads the database and writes nothing; the server may be running.

    Example: ldprecover quarantine cities --database-url sqlite:///ldprecover.db
    """
    from ldprecover_cli.serve import database
    from ldprecover_server import quarantined

    with database(database_url) as settings:
        for group in quarantined(settings, round):
            hour = datetime.fromtimestamp(group.hour * 3600, UTC).isoformat()
            reports = group.oracle.wire.to_json(group.reports)
            print_json({"reason": group.reason, "hour": hour, **reports})


key_group = typer.Typer(name="key", no_args_is_help=True)


@key_group.callback()
def keys() -> None:
    """Make, list and revoke access keys on the machine with the database.

    The server may be running.

    Example: ldprecover key create --database-url sqlite:///ldprecover.db
    """


@key_group.command("create")
def create_key(
    name: Annotated[
        str | None,
        Argument(help="Name of the key; made from the scope when absent.", metavar="NAME"),
    ] = None,
    *,
    scope: Annotated[
        Literal["admin", "analyst", "report"],
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

    Example: ldprecover key create --database-url sqlite:///ldprecover.db

    Example: ldprecover key create app --scope report --output report.key
    """
    import ldprecover_server
    from ldprecover_cli.serve import database, database_file

    with database(database_url) as settings, ExitStack() as stack:
        # Open the file first: a key that cannot be written would be lost, and still be valid.
        file = None if output is None else stack.enter_context(_new_file(output))
        key = ldprecover_server.create_key(settings, scope=scope, name=name)
        typer.echo(key, file)
    article = "A" if scope == "report" else "An"
    place = "" if output is None else f", in {output}"
    note(f"{article} {scope} key of {database_file(settings) or 'the database'}{place}")


@contextmanager
def _new_file(path: Path) -> Iterator[TextIO]:
    """Yield a new file that only its owner can read; delete it if the block raises."""
    with file_errors("write", path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        try:
            yield file
        except BaseException:
            path.unlink()
            raise


@key_group.command("list")
def list_keys(*, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """List the names of keys; keys themselves are never shown again.

    Example: ldprecover key list
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
        console().print("No keys yet. Make one with: ldprecover key create")
        return
    cells = ((k.name, k.scope, k.created_at, k.revoked_at or "") for k in all_keys)
    console().print(plain_table("name", "scope", "created", "revoked", rows=cells))


@key_group.command("revoke")
def revoke_key(
    name: Annotated[
        str, Argument(help="Name of the key, as in `ldprecover key list`.", metavar="NAME")
    ],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a key permanently: no server accepts it any more.

    Example: ldprecover key revoke app
    """
    import ldprecover_server
    from ldprecover_cli.serve import database

    with database(database_url) as settings:
        ldprecover_server.revoke_key(settings, name)
    note(f"The key {name} is revoked.")

"""`admin migrate`, `admin check` and `admin log`: commands on the server's database."""

from dataclasses import asdict

import typer

from ldprecover_cli.options import DatabaseUrl, Json
from ldprecover_cli.output import console, note, plain_table, print_json, warn


def migrate(*, database_url: DatabaseUrl = None) -> None:
    """Migrate a database to the schema of this version.

    On SQLite the server makes the file, and migrates it when it starts. On Postgres it starts only
    with this schema.

    Example: ldprecover admin migrate --database-url postgresql://ldprecover@db/ldprecover
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

    Example: ldprecover admin check --database-url sqlite:///ldprecover.db
    """
    import ldprecover_server
    from ldprecover_attacker.plugins import load
    from ldprecover_cli.serve import database

    load(failed=warn)
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


def log(*, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """List who opened, closed or deleted what, and made keys and tickets.

    The last act comes first; 10,000 acts are kept, for a year. An act without a key was done on the
    machine with the database.

    Example: ldprecover admin log
    """
    import ldprecover_server
    from ldprecover_cli.serve import database

    with database(database_url) as settings:
        acts = ldprecover_server.list_acts(settings)
    if json:
        print_json({"acts": [asdict(act) for act in acts]})
        return
    rows = ((act.at, act.key or "", act.act, act.subject) for act in acts)
    console().print(plain_table("time", "key", "act", "name", rows=rows))

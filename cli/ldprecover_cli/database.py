"""`migrate`, `check` and `quarantine`: commands on the server's database."""

from dataclasses import asdict

import typer

from ldprecover_cli.options import DatabaseUrl, Json, RoundArgument
from ldprecover_cli.output import console, note, plain, plain_table, print_json


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(migrate)
    app.command()(check)
    app.command()(quarantine)


def migrate(*, database_url: DatabaseUrl = None) -> None:
    """Migrate a database to the schema of this version.

    On SQLite the server does so when it starts. On Postgres it starts only with this schema.

    Example: ldprecover migrate --database-url postgresql+psycopg://ldprecover@db/ldprecover
    """
    from ldprecover_cli.serve import migrate_database

    revisions = migrate_database(database_url=database_url)
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
    from ldprecover_cli.serve import check_database

    findings = check_database(database_url=database_url)
    if json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    elif findings:
        table = plain_table("round", "what", "expected", "found", numbers=2)
        for finding in findings:
            numbers = (f"{finding.expected:,}", f"{finding.found:,}")
            table.add_row(plain(finding.round), plain(finding.what), *numbers)
        console().print(table)
    else:
        note("The database is consistent.")
    if any(finding.fault for finding in findings):
        raise typer.Exit(1)


def quarantine(round: RoundArgument = "current", *, database_url: DatabaseUrl = None) -> None:
    """Print a round's quarantined reports, a line of JSON for each hour and reason.

    It reads the database and writes nothing; the server may be running.

    Example: ldprecover quarantine cities --database-url sqlite:///ldprecover.db
    """
    from ldprecover_cli.serve import quarantined_reports

    for group in quarantined_reports(round, database_url=database_url):
        print_json(group)

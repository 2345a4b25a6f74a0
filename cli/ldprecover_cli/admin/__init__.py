"""`admin`: keys, tickets and database of a server."""

from ldprecover_cli.admin import database, key, ticket
from ldprecover_cli.grammar import group

app = group(
    "admin",
    """Make access keys and tickets; care for a server's database.

    All but `ticket` run on the machine with the database; the server may be running.

    Example: ldprecover admin key create app --scope report
    """,
    ticket=ticket.ticket,
    migrate=database.migrate,
    check=database.check,
    log=database.log,
    key=key.app,
)

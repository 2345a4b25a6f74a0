"""The tables, for SQLite and Postgres alike, and the keys of advisory locks.

No column links a person to a report. Submission keys have no time, position or segment; a segment
has the shuffled reports of a whole commit, and the hour. But databases also store row versions and
places in files, which link the two: see docs/explanation/threat-model.md.
"""

from typing import Any

import sqlalchemy as sa

from ldprecover.rounds.parameters import TEXTS
from ldprecover_server.storage.encoding import DIGEST, KEY

metadata = sa.MetaData()

# SQLite assigns ids only to a column of exactly INTEGER.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _column(name: str, type_: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=False, **options)


def _named_columns() -> tuple[sa.Column[Any], ...]:
    """Return the columns by which a round or a form is found."""
    return (
        _id_column("seq"),
        _column("id", sa.String(32), unique=True),
        _column("name", sa.String(64), unique=True),
    )


def _id_column(name: str = "id") -> sa.Column[Any]:
    return _column(name, _Id, primary_key=True, autoincrement=True)


def _round_column(*, primary_key: bool = False, **options: Any) -> sa.Column[Any]:
    reference = sa.ForeignKey("rounds.seq", **options)
    return sa.Column("round", _Id, reference, nullable=False, primary_key=primary_key)


def total(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Return the sum of a column; 0 without rows."""
    return sa.func.coalesce(sa.func.sum(column), 0)


forms = sa.Table(
    "forms",
    metadata,
    *_named_columns(),
    sa.Column("title", sa.String(120)),
    _column("size", sa.Integer),  # number of rounds
)

# A row stays when its rounds are deleted, so that no number is used twice. Opening the next round
# locks it.
series = sa.Table(
    "series",
    metadata,
    _column("name", sa.String(50), primary_key=True),
    _column("last", sa.Integer),  # number of the round or form that was opened last
)

rounds = sa.Table(
    "rounds",
    metadata,
    *_named_columns(),
    _column("protocol", sa.String(16)),
    _column("epsilon", sa.Double),
    sa.Column("parameter", sa.Integer),  # the protocol's own, such as a hash range; null for none
    _column("practice", sa.Boolean),  # whether it may be answered over plain http
    _column("p", sa.Double),
    _column("q", sa.Double),
    _column("domain_size", sa.Integer),  # number of items
    _column("labels_bytes", sa.Integer),  # size of the labels as a JSON array in ASCII
    _column("digest", sa.String(64)),  # of the parameters and the labels, in hex
    # The texts that a round shows, and their language; null for none.
    *(sa.Column(name, sa.String(length)) for name, length in TEXTS.items()),
    _column("access", sa.String(8)),  # who may submit: open, key, ticket
    _column("read_access", sa.String(8)),  # who may read: public, key
    _column("retention", sa.String(7)),  # of segments: forever, none
    _column("state", sa.String(8)),  # open, closed, or gone: deleted, with rows left to delete
    _column("opened_at", sa.String(32)),
    sa.Column("closed_at", sa.String(32)),
    # 128 random bits in hex, drawn when the round is closed, which split its reports for
    # certificates; null before.
    sa.Column("seed", sa.String(32)),
    # The id of the form that the round belongs to, and its index there; null without one.
    sa.Column("form", sa.String(32), sa.ForeignKey("forms.id")),
    sa.Column("position", sa.Integer),
    # The series that the round, or its form, belongs to, and its number there; null without one.
    sa.Column("series", sa.String(50)),
    sa.Column("number", sa.Integer),
    sa.Column("closes_at", sa.String(32)),  # in UTC; null if only a caller closes it
    sa.UniqueConstraint("form", "position"),
    sa.Index("ix_rounds_series_number", "series", "number"),
    sqlite_autoincrement=True,  # `seq` orders rounds by opening, so SQLite must never reuse one
)

NOT_GONE = rounds.c.state != "gone"
"""Condition for rounds that are not deleted; see `maintenance.deletion`."""

# Megabytes a round, so calls that answer no labels must not read them. Beside a blob in its row,
# SQLite reads and rewrites all of it for the columns after it.
labels = sa.Table(
    "labels",
    metadata,
    _round_column(primary_key=True),
    _column("items", sa.LargeBinary),  # JSON array in UTF-8
)

# A key starts with its round: see `encoding`.
submission_keys = sa.Table(
    "keys",
    metadata,
    _column("key", KEY, primary_key=True),
    _column("digest", DIGEST),
    sqlite_with_rowid=False,  # a hidden row number would reveal the order of arrival
)

segments = sa.Table(
    "segments",
    metadata,
    _id_column(),
    # No foreign key: it would lock the round in every commit. Segments are deleted before rounds.
    _column("round", _Id),
    _column("hour", sa.Integer),  # since the epoch
    _column("n", sa.Integer),
    _column("data", sa.LargeBinary),  # packed reports
    sa.Index("ix_segments_round_id", "round", "id"),
)

tallies = sa.Table(
    "tallies",
    metadata,
    _round_column(primary_key=True),
    _column("process", sa.Integer, primary_key=True),
    _column("n", sa.BigInteger),
    sa.Column("token", sa.LargeBinary(16)),  # random, of the process that wrote the row last
    # Last: SQLite reads a row up to the last column that a statement needs.
    _column("counts", sa.LargeBinary),  # the tally's summary: see `encoding`
)

access_keys = sa.Table(
    "access_keys",
    metadata,
    _column("name", sa.String(64), primary_key=True),
    _column("scope", sa.String(8)),  # admin, analyst, report
    _column("hash", sa.LargeBinary(32), unique=True),  # SHA-256 of the key
    _column("created_at", sa.String(32)),
    sa.Column("revoked_at", sa.String(32)),
)

# The one secret that is stored unhashed: tickets are signed with keys derived from it.
secrets = sa.Table(
    "secrets",
    metadata,
    _column("name", sa.String(16), primary_key=True),
    _column("value", sa.LargeBinary(32)),
)

# What the recommended recovery of a round concludes; the recovery only of a closed round. A
# revision that changes the form of a verdict or a recovery deletes the rows: servers compute them
# again.
verdicts = sa.Table(
    "verdicts",
    metadata,
    _round_column(primary_key=True, ondelete="CASCADE"),
    # In seconds since the epoch: no process computes the verdict before, because one does, or the
    # last verdict on the open round is too recent.
    _column("due_at", sa.BigInteger, default=0),
    # The number of reports from which on the verdict on the open round is computed again.
    _column("due_reports", sa.BigInteger, default=1),
    sa.Column("attack", sa.String(17)),  # by the last verdicts: see `storage.verdicts`
    sa.Column("verdict", sa.Text),  # JSON; null while it is computed
    # Last, as the counts of a tally.
    sa.Column("recovery", sa.LargeBinary),  # packed: see `analysis.tasks`
)

# What holders of admin keys changed, and what was changed on the database itself.
acts = sa.Table(
    "acts",
    metadata,
    _id_column(),
    _column("at", sa.String(32)),
    sa.Column("key", sa.String(64)),  # name of the key; null for a command on the database
    _column("act", sa.String(24)),
    _column("subject", sa.String(64)),  # name of the round, form or key
)

_ON_POSTGRES = (
    """
    CREATE FUNCTION ldprecover_abort_commit() RETURNS integer LANGUAGE plpgsql AS
    $$ BEGIN
        RAISE EXCEPTION 'keys or tally changed during the commit' USING ERRCODE = 'LD001';
    END $$
    """,
    # Uncompressed outside the row, a slice of a segment is read without the rest of it.
    "ALTER TABLE segments ALTER COLUMN data SET STORAGE EXTERNAL",
    "ALTER TABLE tallies ALTER COLUMN counts SET STORAGE EXTERNAL",
    # Every commit updates a tally. Half of each page is left free for its next version, and values
    # stored outside the row (500 items or more) are vacuumed without delay.
    "ALTER TABLE tallies SET (fillfactor = 50, toast.autovacuum_vacuum_cost_delay = 0)",
)


@sa.event.listens_for(metadata, "after_create")
def _finish_on_postgres(target: sa.MetaData, connection: sa.Connection, **options: Any) -> None:
    if connection.dialect.name == "postgresql":
        for statement in _ON_POSTGRES:
            connection.exec_driver_sql(statement)


# Keys of the Postgres advisory locks, in one place because they share the whole database. Locks
# with two keys (a class and a number) and locks with one key never conflict with each other.
PROCESS_CLASS = 0x4C44505
"""Class of the session locks on process numbers (0, 1, ...) and of `MAINTENANCE_NUMBER`."""

MAINTENANCE_NUMBER = -1
"""Number in `PROCESS_CLASS` that serialises deletion."""

ROUND_CLASS = 0x4C44506
"""Class of the locks on rounds; the number is the low 31 bits of `rounds.seq`.

Commits share a round's lock, and ending the round takes it exclusively.
"""

MIGRATION_KEY = 0x4C44506
"""Single key that serialises migrations."""

"""The tables, for SQLite and Postgres alike.

Nothing here links a person to a report: key rows hold neither time nor position nor segment, and
a segment holds reports of a whole commit, shuffled, with the hour.
"""

import sqlalchemy as sa

__all__ = ["SCHEMA_VERSION", "admin_keys", "keys", "metadata", "rounds", "schema_version", "segments", "tallies"]

SCHEMA_VERSION = 1

metadata = sa.MetaData()

# SQLite gives ids by itself only to a column of exactly INTEGER.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _round_column(**options: object) -> sa.Column[int]:
    return sa.Column("round", _Id, sa.ForeignKey("rounds.seq"), nullable=False, **options)  # type: ignore[arg-type]


rounds = sa.Table(
    "rounds",
    metadata,
    sa.Column("seq", _Id, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(32), nullable=False, unique=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("protocol", sa.String(16), nullable=False),
    sa.Column("epsilon", sa.Double, nullable=False),
    sa.Column("hash_range", sa.Integer),
    sa.Column("items", sa.LargeBinary, nullable=False),  # JSON array of the labels, in UTF-8
    sa.Column("state", sa.String(8), nullable=False),
    sa.Column("opened_at", sa.String(32), nullable=False),
    sa.Column("closed_at", sa.String(32)),
    sqlite_autoincrement=True,  # the current round is the one opened last: seq is never given twice
)

keys = sa.Table(
    "keys",
    metadata,
    _round_column(primary_key=True),
    sa.Column("key", sa.LargeBinary(16), primary_key=True),  # 16 bytes of SHA-256 of the idempotency key
    sa.Column("digest", sa.LargeBinary(16), nullable=False),  # of the packed reports, salted with the key itself
    sqlite_with_rowid=False,  # no hidden row number that tells the order of arrival
)

segments = sa.Table(
    "segments",
    metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    _round_column(index=True),
    sa.Column("hour", sa.Integer, nullable=False),  # hours since the epoch
    sa.Column("n", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),  # packed reports
)

tallies = sa.Table(
    "tallies",
    metadata,
    _round_column(primary_key=True),
    sa.Column("process", sa.Integer, primary_key=True),
    sa.Column("n", sa.BigInteger, nullable=False),
    sa.Column("counts", sa.LargeBinary, nullable=False),  # <i8, one an item
)

admin_keys = sa.Table(
    "admin_keys",
    metadata,
    sa.Column("hash", sa.LargeBinary(32), primary_key=True),  # SHA-256 of the key
    sa.Column("created_at", sa.String(32), nullable=False),
)

schema_version = sa.Table("schema_version", metadata, sa.Column("version", sa.Integer, primary_key=True))

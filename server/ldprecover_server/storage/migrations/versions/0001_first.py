"""The first schema."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

# Until the first release this file changes with the schema, and each time its revision does, so
# that a database of another schema is refused.
revision = "0001_5"
down_revision = None

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_Key = sa.LargeBinary(16).with_variant(postgresql.UUID(), "postgresql")
_Digest = sa.LargeBinary(8).with_variant(sa.BigInteger(), "postgresql")


def _column(name: str, type_: sa.types.TypeEngine[Any], **options: Any) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=False, **options)


def _id_column() -> sa.Column[Any]:
    return _column("id", _Id, primary_key=True, autoincrement=True)


def _round_column(**options: Any) -> sa.Column[Any]:
    return sa.Column("round", _Id, sa.ForeignKey("rounds.seq", **options), nullable=False)


_ABORT_COMMIT = """
CREATE FUNCTION ldprecover_abort_commit() RETURNS integer LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'keys or tally changed during the commit' USING ERRCODE = 'LD001'; END $$
"""


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "forms",
        _column("seq", _Id, primary_key=True, autoincrement=True),
        _column("id", sa.String(32), unique=True),
        _column("name", sa.String(64), unique=True),
        sa.Column("title", sa.String(120)),
        _column("size", sa.Integer()),
    )
    op.create_table(
        "rounds",
        _column("seq", _Id, primary_key=True, autoincrement=True),
        _column("id", sa.String(32), unique=True),
        _column("name", sa.String(64), unique=True),
        _column("protocol", sa.String(16)),
        _column("epsilon", sa.Double()),
        sa.Column("parameter", sa.Integer),
        _column("practice", sa.Boolean()),
        _column("p", sa.Double()),
        _column("q", sa.Double()),
        _column("domain_size", sa.Integer()),
        _column("labels_bytes", sa.Integer()),
        _column("digest", sa.String(64)),
        sa.Column("question", sa.String(300)),
        sa.Column("title", sa.String(120)),
        sa.Column("thanks", sa.String(300)),
        _column("access", sa.String(8)),
        _column("read_access", sa.String(8)),
        _column("retention", sa.String(7)),
        _column("state", sa.String(8)),
        _column("opened_at", sa.String(32)),
        sa.Column("closed_at", sa.String(32)),
        sa.Column("seed", sa.String(32)),
        sa.Column("form", sa.String(32), sa.ForeignKey("forms.id")),
        sa.Column("position", sa.Integer),
        sa.UniqueConstraint("form", "position"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "labels",
        _round_column(),
        _column("items", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("round"),
    )
    op.create_table(
        "keys",
        _column("key", _Key, primary_key=True),
        _column("digest", _Digest),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "segments",
        _id_column(),
        _column("round", _Id),
        _column("hour", sa.Integer()),
        _column("n", sa.Integer()),
        _column("data", sa.LargeBinary()),
        sa.Index("ix_segments_round_id", "round", "id"),
    )
    op.create_table(
        "tallies",
        _round_column(),
        _column("process", sa.Integer()),
        _column("n", sa.BigInteger()),
        sa.Column("token", sa.LargeBinary(16)),
        _column("counts", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("round", "process"),
    )
    op.create_table(
        "access_keys",
        _column("name", sa.String(64), primary_key=True),
        _column("scope", sa.String(8)),
        _column("hash", sa.LargeBinary(32), unique=True),
        _column("created_at", sa.String(32)),
        sa.Column("revoked_at", sa.String(32)),
    )
    op.create_table(
        "secrets",
        _column("name", sa.String(16), primary_key=True),
        _column("value", sa.LargeBinary(32)),
    )
    op.create_table(
        "verdicts",
        _round_column(ondelete="CASCADE"),
        _column("claimed_until", sa.BigInteger()),
        sa.Column("verdict", sa.Text),
        sa.Column("recovery", sa.LargeBinary),
        sa.PrimaryKeyConstraint("round"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_ABORT_COMMIT)
        # Uncompressed outside the row, a slice of a segment is read without the rest of it.
        op.execute("ALTER TABLE segments ALTER COLUMN data SET STORAGE EXTERNAL")
        op.execute("ALTER TABLE tallies ALTER COLUMN counts SET STORAGE EXTERNAL")
        # Every commit updates a tally. Half of each page is left free for its next version, and
        # values stored outside the row (500 items or more) are vacuumed without delay.
        op.execute(
            "ALTER TABLE tallies SET (fillfactor = 50, toast.autovacuum_vacuum_cost_delay = 0)"
        )

"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "rounds",
        sa.Column("seq", _Id, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("name", sa.String(64), nullable=False, unique=True),
        sa.Column("protocol", sa.String(16), nullable=False),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("hash_range", sa.Integer),
        sa.Column("items", sa.LargeBinary, nullable=False),
        sa.Column("access", sa.String(8), nullable=False),
        sa.Column("read_access", sa.String(8), nullable=False),
        sa.Column("retention", sa.Integer),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("opened_at", sa.String(32), nullable=False),
        sa.Column("closed_at", sa.String(32)),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "keys",
        sa.Column("round", _Id, sa.ForeignKey("rounds.seq"), primary_key=True),
        sa.Column("key", sa.LargeBinary(16), primary_key=True),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "segments",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("round", _Id, sa.ForeignKey("rounds.seq"), nullable=False, index=True),
        sa.Column("hour", sa.Integer, nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "tallies",
        sa.Column("round", _Id, sa.ForeignKey("rounds.seq"), primary_key=True),
        sa.Column("process", sa.Integer, primary_key=True),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "refusals",
        sa.Column("round", _Id, sa.ForeignKey("rounds.seq"), primary_key=True),
        sa.Column("process", sa.Integer, primary_key=True),
        sa.Column("reason", sa.String(40), primary_key=True),
        sa.Column("n", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "access_keys",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("revoked_at", sa.String(32)),
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(16), primary_key=True),
        sa.Column("value", sa.LargeBinary(32), nullable=False),
    )

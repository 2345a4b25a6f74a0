"""Rounds may have canary items, and set reports aside."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("rounds", sa.Column("canaries", sa.LargeBinary))
    op.add_column(
        "rounds", sa.Column("quarantine", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column(
        "rounds", sa.Column("screened", sa.Boolean, nullable=False, server_default=sa.true())
    )
    op.add_column("rounds", sa.Column("recurring", sa.LargeBinary))
    op.add_column("rounds", sa.Column("screened_segment", sa.BigInteger))
    op.add_column(
        "rounds", sa.Column("seeds_quarantined", sa.BigInteger, nullable=False, server_default="0")
    )
    op.add_column(
        "tallies", sa.Column("quarantined", sa.BigInteger, nullable=False, server_default="0")
    )
    op.create_table(
        "quarantine",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("round", _Id, sa.ForeignKey("rounds.seq"), nullable=False),
        sa.Column("reason", sa.String(4), nullable=False),
        sa.Column("hour", sa.Integer, nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_quarantine_round_id", "quarantine", ["round", "id"])

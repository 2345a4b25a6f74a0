"""Verdicts on open rounds, and acts of admins."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the table of acts, and a new one of verdicts, which servers compute again."""
    op.drop_table("verdicts")
    op.create_table(
        "verdicts",
        sa.Column("round", _Id, sa.ForeignKey("rounds.seq", ondelete="CASCADE"), nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("due_reports", sa.BigInteger, nullable=False),
        sa.Column("attack", sa.String(17)),
        sa.Column("verdict", sa.Text),
        sa.Column("recovery", sa.LargeBinary),
        sa.PrimaryKeyConstraint("round"),
    )
    op.create_table(
        "acts",
        sa.Column("id", _Id, primary_key=True, autoincrement=True),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("key", sa.String(64)),
        sa.Column("act", sa.String(24), nullable=False),
        sa.Column("subject", sa.String(64), nullable=False),
    )

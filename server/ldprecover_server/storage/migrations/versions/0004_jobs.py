"""Analyses may be asked for now and read later."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("round", _Id, sa.ForeignKey("rounds.seq", ondelete="CASCADE"), nullable=False),
        sa.Column("keyed", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(9), nullable=False),
        sa.Column("progress", sa.Double, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("beat", sa.BigInteger, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.Column("error", sa.Text),
    )

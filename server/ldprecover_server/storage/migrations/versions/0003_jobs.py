"""Jobs with their analysis and problem. Earlier ones are deleted: a job is kept for an hour."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.drop_table("jobs")
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), nullable=False, primary_key=True),
        sa.Column("round", _Id, sa.ForeignKey("rounds.seq", ondelete="CASCADE"), nullable=False),
        sa.Column("analysis", sa.String(11), nullable=False),
        sa.Column("keyed", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(9), nullable=False),
        sa.Column("progress", sa.Double, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("heartbeat", sa.BigInteger, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.Column("problem", sa.Text),
    )

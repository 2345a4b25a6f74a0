"""Verdicts on closed rounds."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "verdicts",
        sa.Column(
            "round",
            _Id,
            sa.ForeignKey("rounds.seq", ondelete="CASCADE"),
            nullable=False,
            primary_key=True,
        ),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("claimed_until", sa.BigInteger, nullable=False),
        sa.Column("verdict", sa.Text),
        sa.Column("recovery", sa.LargeBinary),
    )

"""Series, and the time at which a round closes."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table of series, and add the columns of rounds with their index."""
    op.create_table(
        "series",
        sa.Column("name", sa.String(50), primary_key=True),
        sa.Column("last", sa.Integer, nullable=False),
    )
    op.add_column("rounds", sa.Column("series", sa.String(50)))
    op.add_column("rounds", sa.Column("number", sa.Integer))
    op.add_column("rounds", sa.Column("closes_at", sa.String(32)))
    op.create_index("ix_rounds_series_number", "rounds", ["series", "number"])

"""Rounds may belong to a series."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("rounds", sa.Column("series", sa.String(64)))
    op.create_index("ix_rounds_series", "rounds", ["series"])

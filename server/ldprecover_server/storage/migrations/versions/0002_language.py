"""The language of a round's texts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001_5"


def upgrade() -> None:
    """Add the column."""
    op.add_column("rounds", sa.Column("language", sa.String(35)))

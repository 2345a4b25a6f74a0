"""Tickets may pick the seeds of a round's reports from a public list, of so many seeds."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("rounds", sa.Column("given_seeds", sa.Integer))

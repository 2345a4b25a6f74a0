"""Rounds whose tickets assign seeds. Rounds of OLH with a list of seeds are deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute(
        "UPDATE rounds SET state = 'gone', id = '!' || seq, name = '!' || seq, series = NULL "
        "WHERE given_seeds IS NOT NULL"
    )
    op.drop_column("rounds", "given_seeds")
    op.add_column(
        "rounds",
        sa.Column("assigned_seeds", sa.Boolean, nullable=False, server_default=sa.false()),
    )

"""Repeats in place of recurring seeds: how many reports of each value are moved to quarantine."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute("ALTER TABLE rounds RENAME COLUMN recurring_seeds TO repeats")
    op.execute("ALTER TABLE rounds RENAME COLUMN seeds_quarantined TO repeats_quarantined")
    # Seeds alone do not say how many of their reports remain: they are counted again.
    op.execute("UPDATE rounds SET repeats = NULL, filtered_segment = NULL")
    with op.batch_alter_table("quarantine") as table:
        table.alter_column("reason", type_=sa.String(6), existing_type=sa.String(4))
    op.execute("UPDATE quarantine SET reason = 'repeat' WHERE reason = 'seed'")

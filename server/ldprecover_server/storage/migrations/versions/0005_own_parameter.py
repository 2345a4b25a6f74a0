"""Any protocol may have a parameter of its own, not OLH alone."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("ALTER TABLE rounds RENAME COLUMN hash_range TO parameter")

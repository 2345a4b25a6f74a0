"""The seed that splits a closed round's reports for certificates."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("rounds", sa.Column("seed", sa.String(32)))
    connection = op.get_bind()
    closed = connection.execute(sa.text("SELECT seq FROM rounds WHERE state = 'closed'"))
    for seq in closed.scalars().all():
        connection.execute(
            sa.text("UPDATE rounds SET seed = :seed WHERE seq = :seq"),
            {"seed": secrets.token_hex(16), "seq": seq},
        )

"""The reports of a round may be written as a dataset, which retention shortens."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "datasets",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("round", sa.String(32), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("work", sa.Text, nullable=False),
        sa.Column("retention", sa.Integer, nullable=False),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
    )

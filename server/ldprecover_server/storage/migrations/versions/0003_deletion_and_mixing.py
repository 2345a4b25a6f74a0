"""Rounds are deleted and mixed in pieces; a tally says who wrote it; purged reports are counted."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("rounds", sa.Column("purged", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("rounds", sa.Column("rewritten", sa.Integer, nullable=False, server_default="0"))
    op.add_column(
        "rounds", sa.Column("mixed", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column("rounds", sa.Column("mixed_key", sa.LargeBinary(16)))
    op.add_column("rounds", sa.Column("mixed_segment", sa.BigInteger))
    op.add_column("tallies", sa.Column("token", sa.LargeBinary(16)))
    op.create_index("ix_segments_round_id", "segments", ["round", "id"])
    op.drop_index("ix_segments_round", "segments")
    if op.get_bind().dialect.name == "postgresql":
        # A slice of a segment is then read without the rest of it.
        op.execute("ALTER TABLE segments ALTER COLUMN data SET STORAGE EXTERNAL")
    op.execute(
        "UPDATE rounds SET purged = (SELECT coalesce(sum(n), 0) FROM tallies WHERE round = seq)"
        " - (SELECT coalesce(sum(n), 0) FROM segments WHERE round = seq) WHERE retention > 0"
    )

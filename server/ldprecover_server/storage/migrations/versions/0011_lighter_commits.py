"""On Postgres a commit does not lock its round, and finds room for its tally beside the one
before.
"""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return  # SQLite locks no rows, and would have to write all segments anew
    # A foreign key locks the row that it refers to.
    op.drop_constraint("segments_round_fkey", "segments")
    # A tally is written in every commit: half of each page is left to the next version, and what is
    # kept apart from the row, of 500 items or more, is freed as fast as it comes.
    op.execute("ALTER TABLE tallies SET (fillfactor = 50, toast.autovacuum_vacuum_cost_delay = 0)")

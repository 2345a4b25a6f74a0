"""The schema of version 0.1.0."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: a database without this revision is new, and gets the tables of the code."""

"""Tallies of fewer than 2³² reports take four bytes a count, and none is compressed."""

import numpy as np
import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_tallies = sa.table(
    "tallies",
    sa.column("round"),
    sa.column("process"),
    sa.column("n"),
    sa.column("counts", sa.LargeBinary),
)


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.execute("ALTER TABLE tallies ALTER COLUMN counts SET STORAGE EXTERNAL")
    which = sa.select(_tallies.c.round, _tallies.c.process).where(_tallies.c.n < 1 << 32)
    for round, process in connection.execute(which).all():
        this = sa.and_(_tallies.c.round == round, _tallies.c.process == process)
        counts = np.frombuffer(
            connection.scalars(sa.select(_tallies.c.counts).where(this)).one(), dtype="<i8"
        )
        connection.execute(
            sa.update(_tallies).where(this).values(counts=counts.astype("<u4").tobytes())
        )

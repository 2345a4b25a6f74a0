"""Updates of a tally leave no copies on other pages."""

from collections.abc import Sequence

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import Group, OpenStorage, Submitted, open_round

from ldprecover import Tally
from ldprecover_server.storage import Outcome, SealedBatch
from ldprecover_server.storage.schema import tallies


class Wide(Group):
    """One report of 400 items: its tally nearly fills the maximum size of a row."""

    def rows(self, positions: Sequence[int]) -> SealedBatch:
        return SealedBatch(b"", Tally(np.ones(400, dtype="<i8"), 1))


@pytest.mark.postgres
def test_tally_updates_stay_on_their_page_and_off_the_index(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    seqs = [open_round(storage, retention="none") for _ in range(6)]
    pages = (
        sa.select(sa.text("(ctid::text::point)[0]")).select_from(tallies).order_by(tallies.c.round)
    )

    def commit(seq: int, i: int) -> None:
        assert storage.commit([Wide(seq, [Submitted(b"%d" % i, (0,))])]) == [[Outcome.STORED]]

    def look() -> Sequence[float]:
        with storage.database.read() as connection:
            return connection.scalars(pages).all()

    for seq in seqs:
        commit(seq, 0)
    first = look()
    for i in range(1, 21):
        for seq in seqs[:2]:
            commit(seq, i)
    assert look() == first
    assert len(set(first)) == 3
    assert storage.rounds.tally(seqs[0], 400).n == 21

"""Updates of a tally leave no copies on other pages."""

from collections.abc import Sequence

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import Group, OpenStorage, Submitted, open_round

from ldprecover import Tally
from ldprecover_server.storage import Outcome


class Wide(Group):
    """One report of 400 items: its tally nearly fills the maximum size of a row."""

    def rows(self, positions: Sequence[int]) -> tuple[bytes, Tally]:
        return b"", Tally(np.ones(400, dtype="<i8"), 1)


@pytest.mark.postgres
def test_tally_updates_reuse_their_page(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    seqs = [open_round(storage, retention="none") for _ in range(6)]

    def commit(seq: int, i: int) -> None:
        assert storage.commit([Wide(seq, [Submitted(b"%d" % i, (0,))])]) == [[Outcome.STORED]]

    def pages() -> int:
        with storage.database.read() as connection:
            size = connection.scalar(sa.select(sa.func.pg_relation_size("tallies")))
        return int(size or 0) // 8192

    for seq in seqs:
        commit(seq, 0)
    first = pages()
    for i in range(1, 21):
        for seq in seqs[:2]:
            commit(seq, i)
    # Forty copies would take twenty pages. A page that another process looks at is not tidied then.
    assert pages() <= 2 * first
    assert first == 3
    assert storage.rounds.tally(seqs[0], 400).n == 21

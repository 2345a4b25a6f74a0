"""Reports are read as they were at one moment, in pieces of limited size."""

import tracemalloc

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import PARAMETERS, Submitted, commit, name_of, open_round

from ldprecover import Tally
from ldprecover_server.errors import ReportsGoneError
from ldprecover_server.storage import Storage
from ldprecover_server.storage.schema import segments, tallies
from ldprecover_server.storage.segments import PIECE_BYTES
from ldprecover_server.storage.tallies import encode_counts


def add(storage: Storage, seq: int, name: int, *items: int) -> None:
    commit(storage, seq, Submitted(b"%d" % name, items))


def insert_segment(connection: sa.Connection, seq: int, reports: np.ndarray) -> None:
    """Put a segment there past a commit, which would count it."""
    row = {"round": seq, "hour": 1, "n": len(reports), "data": reports.astype("<u4").tobytes()}
    connection.execute(sa.insert(segments), row)


def test_reports_are_read_in_one_order_with_their_tally(storage: Storage) -> None:
    seq = open_round(storage)
    for i in range(150):
        add(storage, seq, i, i % 6, 5)
    tally, reports = storage.segments.tally_and_reports(seq, 6)
    add(storage, seq, 999, 0)
    first = b"".join(reports)
    assert first == b"".join(reports)
    assert reports.n == tally.n == 300
    assert Tally.of(PARAMETERS.oracle, np.frombuffer(first, dtype="<u4")) == tally
    assert storage.segments.tally_and_reports(seq, 6)[1].n == 301


def test_pieces_have_whole_reports_within_the_limit(storage: Storage) -> None:
    """A large segment comes in slices, small ones together; other rounds' lie between them."""
    seq, other = open_round(storage), open_round(storage)
    rng = np.random.default_rng(1)
    sizes = [700_001, 3, 5, 262_144, 262_143, 1, 1_000_000, *(1_100 * [2])]
    expected = [rng.integers(0, 6, size) for size in sizes]
    with storage.database.write() as connection:
        for reports in expected:
            insert_segment(connection, seq, reports)
            insert_segment(connection, other, np.array([0]))
        counted = Tally.of(PARAMETERS.oracle, np.concatenate(expected).astype("<u4"))
        values = {"round": seq, "process": 0, "n": counted.n, "counts": encode_counts(counted)}
        connection.execute(sa.insert(tallies).values(values))
    pieces = list(storage.segments.tally_and_reports(seq, 6)[1])
    assert all(len(piece) % 4 == 0 and 0 < len(piece) <= PIECE_BYTES for piece in pieces)
    reports = np.frombuffer(b"".join(pieces), dtype="<u4")
    assert np.array_equal(reports, np.concatenate(expected))
    assert len(pieces) < 25  # 8.9 MB: small segments are joined


@pytest.mark.sqlite
def test_large_segment_is_never_held_whole(storage: Storage) -> None:
    """Postgres slices it in the server; SQLite reads the file in pieces."""
    seq = open_round(storage)
    n = 12 << 20
    add(storage, seq, 1, 1)
    with storage.database.write() as connection:
        connection.execute(
            sa.update(segments).where(segments.c.round == seq).values(n=n, data=bytes(4 * n))
        )
        connection.execute(sa.update(tallies).where(tallies.c.round == seq).values(n=n))
    reports = storage.segments.tally_and_reports(seq, 6)[1]
    tracemalloc.start()
    try:
        assert sum(map(len, reports)) == 4 * n
        assert tracemalloc.get_traced_memory()[1] < 4 * PIECE_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.postgres
def test_later_commit_with_a_lower_id_is_not_in_an_earlier_view(storage: Storage) -> None:
    """Ids do not commit in order on Postgres."""
    seq = open_round(storage)
    add(storage, seq, 1, 1)
    with storage.database.write() as slow:
        insert_segment(slow, seq, np.array([5, 5]))
        add(storage, seq, 2, 2)
        reports = storage.segments.tally_and_reports(seq, 6)[1]
        assert reports.n == 2
    assert b"".join(reports) == b"\1\0\0\0\2\0\0\0"


def test_deleted_reports_fail_before_the_first_piece(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An iteration that has begun still yields all."""
    monkeypatch.setattr("ldprecover_server.storage.segments._LIST_LIMIT", 10)
    seq = open_round(storage)
    for i in range(25):
        add(storage, seq, i, 1)
    reports = storage.segments.tally_and_reports(seq, 6)[1]
    pieces = iter(reports)
    assert len(next(pieces)) == 40
    storage.deletion.delete(name_of(storage, seq))
    assert sum(map(len, pieces)) == 60
    with pytest.raises(ReportsGoneError):
        next(iter(reports))


def test_reading_fails_if_counted_reports_are_missing(storage: Storage) -> None:
    seq = open_round(storage)
    for i in range(3):
        add(storage, seq, i, 1)
    with storage.database.write() as connection:
        newest = sa.select(sa.func.max(segments.c.id)).where(segments.c.round == seq)
        connection.execute(sa.delete(segments).where(segments.c.id.in_(newest)))
    with pytest.raises(ReportsGoneError, match=r"3 reports, and 2 were found"):
        list(storage.segments.tally_and_reports(seq, 6)[1])

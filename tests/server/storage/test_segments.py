"""Reports come back as they were at one moment, by bytes, however many segments there are and
however large.
"""

import tracemalloc

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import PARAMETERS, Group, OpenStorage, Submitted, open_round

from ldprecover import Tally
from ldprecover_server.errors import ReportsGoneError
from ldprecover_server.storage import Storage
from ldprecover_server.storage.schema import rounds, segments
from ldprecover_server.storage.segments import PIECE_BYTES
from ldprecover_server.storage.tally_encoding import encode_counts


def commit(storage: Storage, seq: int, name: int, items: tuple[int, ...]) -> None:
    storage.commit([Group(seq, [Submitted(b"%d" % name, items)])])


def insert_segment(connection: sa.Connection, seq: int, reports: np.ndarray) -> None:
    """Put a segment there past a commit, which would count it."""
    row = {"round": seq, "hour": 1, "n": len(reports), "data": reports.astype("<u4").tobytes()}
    connection.execute(sa.insert(segments), row)


def test_reports_are_read_in_one_order_with_their_tally(storage: Storage) -> None:
    seq = open_round(storage)
    for i in range(150):
        commit(storage, seq, i, (i % 6, 5))
    tally, reports = storage.segments.tally_and_reports(seq, 6)
    commit(storage, seq, 999, (0,))
    first = b"".join(reports)
    assert first == b"".join(reports)
    assert reports.n == tally.n == 300
    assert Tally.of(PARAMETERS.oracle, np.frombuffer(first, dtype="<u4")) == tally
    assert storage.segments.reports(seq).n == 301


def test_pieces_have_whole_reports_within_the_limit(storage: Storage) -> None:
    """A large segment comes in slices, small ones together; other rounds' lie between them."""
    seq, other = open_round(storage), open_round(storage)
    rng = np.random.default_rng(1)
    sizes = [700_001, 3, 5, 262_144, 262_143, 1, 1_000_000, *(2_000 * [2])]
    expected = [rng.integers(0, 6, size) for size in sizes]
    with storage.database.write() as connection:
        for reports in expected:
            insert_segment(connection, seq, reports)
            insert_segment(connection, other, np.array([0]))
    with storage.database.write() as connection:
        counted = Tally.of(PARAMETERS.oracle, np.concatenate(expected).astype("<u4"))
        row = {"seq": seq, "n": counted.n, "counts": encode_counts(counted)}
        connection.execute(
            sa.text(
                "INSERT INTO tallies (round, process, n, counts) VALUES (:seq, 0, :n, :counts)"
            ),
            row,
        )
    lengths, found = [], []
    for piece in storage.segments.reports(seq):
        assert len(piece) % 4 == 0
        assert 0 < len(piece) <= PIECE_BYTES
        lengths.append(len(piece))
        found.append(np.frombuffer(piece, dtype="<u4"))
    assert np.array_equal(np.concatenate(found), np.concatenate(expected))
    assert len(lengths) < 25  # 8.9 MB: the small segments do not come one by one


@pytest.mark.sqlite
def test_a_segment_of_many_megabytes_is_never_held_whole(storage: Storage) -> None:
    """Postgres slices it on its side; here the file is read by pieces."""
    seq = open_round(storage)
    many = 12 << 20
    commit(storage, seq, 1, (1,))
    with storage.database.write() as connection:
        connection.execute(
            sa.update(segments).where(segments.c.round == seq).values(n=many, data=bytes(4 * many))
        )
        connection.execute(
            sa.text("UPDATE tallies SET n = :n WHERE round = :seq"), {"n": many, "seq": seq}
        )
    reports = storage.segments.reports(seq)
    tracemalloc.start()
    try:
        assert sum(map(len, reports)) == 4 * many
        assert tracemalloc.get_traced_memory()[1] < 4 * PIECE_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.postgres
def test_later_commit_with_a_lower_id_is_not_in_an_earlier_view(
    storage: Storage,
) -> None:
    """Its segment has an earlier id than one that was there already."""
    seq = open_round(storage)
    commit(storage, seq, 1, (1,))
    with storage.database.write() as slow:
        insert_segment(slow, seq, np.array([5, 5]))
        commit(storage, seq, 2, (2,))
        reports = storage.segments.reports(seq)
        assert reports.n == 2
    assert b"".join(reports) == b"\1\0\0\0\2\0\0\0"


def test_deleted_reports_fail_before_the_first_piece(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has begun sees all as they were."""
    monkeypatch.setattr("ldprecover_server.storage.segments._LIST_LIMIT", 10)
    seq = open_round(storage)
    for i in range(25):
        commit(storage, seq, i, (1,))
    with storage.database.read() as connection:
        name = connection.scalars(sa.select(rounds.c.name).where(rounds.c.seq == seq)).one()
    reports = storage.segments.tally_and_reports(seq, 6)[1]
    pieces = iter(reports)
    assert len(next(pieces)) == 40
    storage.deletion.delete(name)
    assert sum(map(len, pieces)) == 60
    with pytest.raises(ReportsGoneError):
        next(iter(reports))


def test_reading_fails_if_counted_reports_are_missing(storage: Storage) -> None:
    seq = open_round(storage)
    for i in range(3):
        commit(storage, seq, i, (1,))
    with storage.database.write() as connection:
        newest = (
            sa.select(sa.func.max(segments.c.id)).where(segments.c.round == seq).scalar_subquery()
        )
        connection.execute(sa.delete(segments).where(segments.c.id == newest))
    with pytest.raises(ReportsGoneError, match=r"3 reports, and 2 were found"):
        list(storage.segments.reports(seq))


def test_look_up_cost_does_not_grow_with_segments(open_storage: OpenStorage, fresh: str) -> None:
    """The plans say so: what looks at segments goes by their index, and stops."""
    storage = open_storage(fresh)
    seq = open_round(storage)
    statements: list[str] = []

    def look(connection: sa.Connection, cursor: object, statement: str, *more: object) -> None:
        statements.append(statement)

    sa.event.listen(storage.database.engine, "before_cursor_execute", look)
    storage.segments.evidence(seq, 6)
    assert statements
    assert not any("segments" in statement for statement in statements)
    statements.clear()
    storage.segments.tally_and_reports(seq, 6)
    asked = [statement for statement in statements if "segments" in statement]
    assert len(asked) == 2
    assert "LIMIT" in asked[0]
    assert "segments.id >" in asked[1]

"""Unlinking a closed round changes nothing but what linked its keys to its reports."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import (
    PARAMETERS,
    Group,
    OpenStorage,
    Submitted,
    open_round,
    stored,
)

from ldprecover import GRR, RoundParameters
from ldprecover.protocols import PROTOCOLS
from ldprecover_server.errors import ReportsGoneError
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.rejections import Rejections
from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.schema import rounds, segments, submission_keys

NAMES = [b"%d" % i for i in range(60)]


def submitted(i: int) -> Submitted:
    """The first half reports item 0, the second half item 1."""
    return Submitted(NAMES[i], (int(i >= len(NAMES) // 2),))


def fill(storage: Storage, seq: int, numbers: range = range(len(NAMES))) -> None:
    for i in numbers:
        assert storage.commit([Group(seq, [submitted(i)])]) == [[Outcome.STORED]]


def close(storage: Storage, seq: int) -> None:
    with storage.database.read() as connection:
        name = connection.scalars(sa.select(rounds.c.name).where(rounds.c.seq == seq)).one()
    storage.rounds.close(name)


def order_of_reports(storage: Storage, seq: int) -> list[int]:
    return np.frombuffer(b"".join(storage.segments.reports(seq)), dtype="<u4").tolist()


def is_mixed(storage: Storage, seq: int) -> bool:
    with storage.database.read() as connection:
        return connection.scalars(sa.select(rounds.c.unlinked).where(rounds.c.seq == seq)).one()


def check_whole(storage: Storage, seq: int) -> None:
    """Every report is there once, every key answers as before."""
    assert stored(storage, seq) == 30 * [0] + 30 * [1]
    assert sorted(order_of_reports(storage, seq)) == stored(storage, seq)
    assert storage.segments.evidence(seq, 6) == (storage.rounds.tally(seq, 6), True)
    again = [submitted(i) for i in range(len(NAMES))]
    others = [Submitted(NAMES[0], (5,)), Submitted(b"new", (5,))]
    outcomes = storage.commit([Group(seq, [*again, *others])])[0]
    assert Counter(outcomes) == {Outcome.DUPLICATE: 60, Outcome.KEY_REUSED: 1, Outcome.CLOSED: 1}
    assert storage.rounds.tally(seq, 6).summary.tolist() == [30, 30, 0, 0, 0, 0]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight rows each, however long they take."""
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._LONG_SECONDS", 60.0)
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._FIRST_ROWS", 8)
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._MAX_ROWS", 8)


def pieces(most: int) -> Callable[[], bool]:
    left = [most]

    def go_on() -> bool:
        left[0] -= 1
        return left[0] >= 0

    return go_on


def test_closed_round_is_unlinked_once(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    keeper = Housekeeping(storage, Rejections(storage))
    seq, other = open_round(storage), open_round(storage)
    fill(storage, seq)
    fill(storage, other)
    keeper.once()
    assert order_of_reports(storage, seq) == 30 * [0] + 30 * [1]
    close(storage, seq)
    assert storage.unlinking.rows_left() == 60 + (
        60 if storage.database.dialect == "postgresql" else 0
    )
    keeper.once()
    assert (
        is_mixed(storage, seq),
        is_mixed(storage, other),
        storage.unlinking.rows_left(),
        keeper.rows_to_unlink,
    ) == (
        True,
        False,
        0,
        0,
    )
    mixed = order_of_reports(storage, seq)
    assert mixed != sorted(mixed)  # by chance once in 60! / 30!² = 10^17
    check_whole(storage, seq)
    assert storage.unlinking.run().rows == 0
    assert order_of_reports(storage, seq) == mixed
    assert order_of_reports(storage, other) == 30 * [0] + 30 * [1]


def test_unlinking_skips_rounds_of_missing_plugins(
    open_storage: OpenStorage, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(fresh)
    monkeypatch.setitem(PROTOCOLS, "theirs", type("Theirs", (GRR,), {"protocol": "theirs"}))
    theirs = open_round(storage, parameters=RoundParameters("theirs", 1.0, PARAMETERS.items))
    ours = open_round(storage)
    for seq in (theirs, ours):
        fill(storage, seq)
        close(storage, seq)
    with monkeypatch.context() as unloaded:
        unloaded.delitem(PROTOCOLS, "theirs")
        assert storage.unlinking.run().done
        assert (is_mixed(storage, theirs), is_mixed(storage, ours)) == (False, True)
    assert storage.unlinking.run().done
    assert is_mixed(storage, theirs)


@pytest.mark.postgres
def test_row_versions_and_places_do_not_link_keys_to_reports(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    fill(storage, seq)
    linked = sa.text("SELECT count(*) FROM keys JOIN segments ON keys.xmin = segments.xmin")
    placed = sa.select(submission_keys.c.key).order_by(sa.literal_column("ctid"))
    with storage.database.read() as connection:
        assert connection.scalar(linked) == 60
        assert connection.scalars(placed).all() == [submitted(i).row(seq)["key"] for i in range(60)]
    close(storage, seq)
    storage.unlinking.run()
    with storage.database.read() as connection:
        assert connection.scalar(linked) == 0
        assert connection.scalars(placed).all() == sorted(
            submitted(i).row(seq)["key"] for i in range(60)
        )


@pytest.mark.usefixtures("small_pieces")
def test_unlinking_continues_and_counts_agree_after_each_chunk(
    open_storage: OpenStorage, fresh: str
) -> None:
    storages = [open_storage(fresh) for _ in range(2)]
    seq = open_round(storages[0])
    fill(storages[0], seq)
    close(storages[0], seq)
    left = [storages[0].unlinking.rows_left()]
    while not storages[len(left) % 2].unlinking.run(pieces(3)).done:
        check_whole(storages[0], seq)
        left.append(storages[0].unlinking.rows_left())
        assert len(left) < 40
    assert left == sorted(left, reverse=True)
    assert len(left) >= 4
    assert is_mixed(storages[0], seq)
    check_whole(storages[0], seq)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "where", ["INSERT INTO segments", "INSERT INTO keys", "UPDATE rounds SET", "COMMIT"]
)
def test_interrupted_unlinking_loses_and_doubles_nothing(
    open_storage: OpenStorage, fresh: str, where: str
) -> None:
    """Wherever it does, in whichever piece."""
    storage = open_storage(fresh)
    if where == "INSERT INTO keys" and storage.database.dialect == "sqlite":
        # keys in a SQLite file lie in the order of the keys: they are not unlinked
        where = "DELETE FROM segments"
    seq = open_round(storage)
    fill(storage, seq)
    close(storage, seq)
    countdown = 0

    def look(connection: sa.Connection, cursor: object, statement: str, *more: object) -> None:
        tick(statement)

    def tick(statement: str) -> None:
        nonlocal countdown
        if statement.strip().startswith(where):
            countdown -= 1
            if countdown == 0:
                raise InterruptedError

    sa.event.listen(storage.database.engine, "before_cursor_execute", look)
    sa.event.listen(storage.database.engine, "commit", lambda connection: tick("COMMIT"))
    broken = 0
    for attempt in range(100):
        countdown = attempt % 4 + 1
        try:
            if storage.unlinking.run(pieces(4)).done:
                break
        except InterruptedError:
            broken += 1
        countdown = 0
        check_whole(storage, seq)
    assert broken >= 3
    countdown = 0
    assert storage.unlinking.run().done
    check_whole(storage, seq)


def test_earlier_view_is_readable_during_and_after_unlinking(
    storage: Storage,
) -> None:
    """Once begun, they come in one order; whoever began before and reads again is told."""
    seq = open_round(storage)
    fill(storage, seq)
    early = storage.segments.reports(seq)
    close(storage, seq)
    before, during, begun = (storage.segments.reports(seq) for _ in range(3))
    assert len(b"".join(begun)) == 240
    pieces = iter(during)
    first = next(pieces)
    storage.unlinking.run()
    assert sorted(np.frombuffer(first + b"".join(pieces), dtype="<u4").tolist()) == stored(
        storage, seq
    )
    for reports in (early, before):
        assert sorted(np.frombuffer(b"".join(reports), dtype="<u4").tolist()) == stored(
            storage, seq
        )
        assert b"".join(reports) == b"".join(reports)
    for reports in (during, begun):
        with pytest.raises(ReportsGoneError):
            list(reports)


def test_earlier_view_fails_if_reports_came_before_unlinking(
    storage: Storage,
) -> None:
    seq = open_round(storage)
    fill(storage, seq, range(30))
    reports = storage.segments.reports(seq)
    fill(storage, seq, range(30, 60))
    close(storage, seq)
    storage.unlinking.run()
    with pytest.raises(ReportsGoneError):
        list(reports)


def test_hours_are_not_joined_so_that_retention_holds_on(
    open_storage: OpenStorage, fresh: str
) -> None:
    now = datetime(2026, 1, 1, 10, 30, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: now)
    seq = storage.rounds.open("R1", "one", PARAMETERS, retention=2).seq
    fill(storage, seq, range(30))
    now += timedelta(hours=1)
    fill(storage, seq, range(30, 60))
    close(storage, seq)
    assert storage.unlinking.run().done
    with storage.database.read() as connection:
        found = connection.execute(
            sa.select(segments.c.hour, segments.c.n).order_by(segments.c.hour)
        ).all()
    hour = storage.hour()
    assert [tuple(row) for row in found] == [(hour - 1, 30), (hour, 30)]
    now += timedelta(hours=2)
    assert storage.deletion.purge().rows == 1
    assert stored(storage, seq) == 30 * [1]
    assert storage.segments.evidence(seq, 6)[1] is False


@pytest.mark.usefixtures("small_pieces")
def test_unlinking_ends_after_the_last_segment_was_purged(
    open_storage: OpenStorage, fresh: str
) -> None:
    """SQLite gives the id of the last one again: it is not taken for one that is yet to be
    unlinked.
    """
    now = datetime(2026, 1, 1, 10, 30, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: now)
    seq = storage.rounds.open("R1", "one", PARAMETERS, retention=1).seq
    now += timedelta(hours=1)
    fill(storage, seq, range(30))
    now -= timedelta(hours=1)  # a clock that was set back
    fill(storage, seq, range(30, 60))
    close(storage, seq)
    assert not storage.unlinking.run(pieces(1)).done
    now += timedelta(hours=2)
    storage.deletion.purge()
    assert storage.unlinking.run(pieces(100)).done
    assert set(stored(storage, seq)) == {0}


@pytest.mark.usefixtures("small_pieces")
def test_segments_deleted_between_chunks_are_skipped(open_storage: OpenStorage, fresh: str) -> None:
    """They were drawn for unlinking, and past their retention before their turn came."""
    now = datetime(2026, 1, 1, 10, 30, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: now)
    seq = storage.rounds.open("R1", "one", PARAMETERS, retention=1).seq
    fill(storage, seq)
    close(storage, seq)
    asked = 0

    def go_on() -> bool:
        nonlocal asked, now
        asked += 1
        if asked == 3:  # two pieces are done
            now += timedelta(hours=3)
            assert storage.deletion.purge().done
        return True

    assert storage.unlinking.run(go_on).done
    assert asked > 3
    assert stored(storage, seq) == []


def test_rounds_without_stored_reports_are_unlinked(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    none = storage.rounds.open("R1", "one", PARAMETERS, retention=0).seq
    fill(storage, none)
    empty = open_round(storage)
    for seq in (none, empty):
        close(storage, seq)
    assert storage.unlinking.run().done
    assert is_mixed(storage, none)
    assert is_mixed(storage, empty)
    assert storage.commit([Group(none, [submitted(3)])]) == [[Outcome.DUPLICATE]]

"""Unlinking a closed round changes nothing but what linked its keys to its reports."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import (
    PARAMETERS,
    OpenStorage,
    Submitted,
    close_round,
    commit,
    for_chunks,
    open_round,
    stored,
)

from ldprecover import GRR, RoundParameters
from ldprecover.protocols import PROTOCOLS
from ldprecover_server.errors import ReportsGoneError
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.database import is_write
from ldprecover_server.storage.schema import rounds, segments, submission_keys

HALF = 30
# The first half reports item 0, the second half item 1.
SUBMISSIONS = [Submitted(b"%d" % i, (i // HALF,)) for i in range(2 * HALF)]
FIRST, SECOND = SUBMISSIONS[:HALF], SUBMISSIONS[HALF:]
ITEMS = HALF * [0] + HALF * [1]
HOUR = timedelta(hours=1)


def fill(storage: Storage, seq: int, submissions: Iterable[Submitted] = SUBMISSIONS) -> None:
    """Store every report in a segment by itself."""
    for submitted in submissions:
        assert commit(storage, seq, submitted) == [Outcome.STORED]


def fill_and_close(storage: Storage, parameters: RoundParameters = PARAMETERS) -> int:
    """Return a closed round that has all reports."""
    seq = open_round(storage, parameters)
    fill(storage, seq)
    close_round(storage, seq)
    return seq


def items_of(pieces: Iterable[bytes]) -> list[int]:
    return np.frombuffer(b"".join(pieces), dtype="<u4").tolist()


def items_in_order(storage: Storage, seq: int) -> list[int]:
    return items_of(storage.segments.reports(seq))


def is_unlinked(storage: Storage, seq: int) -> bool:
    with storage.database.read() as connection:
        return connection.scalars(sa.select(rounds.c.unlinked).where(rounds.c.seq == seq)).one()


def assert_unchanged(storage: Storage, seq: int) -> None:
    """Every report is stored once, and every key has its outcome of before."""
    assert stored(storage, seq) == sorted(items_in_order(storage, seq)) == ITEMS
    assert storage.segments.evidence(seq, 6) == (storage.rounds.tally(seq, 6), True)
    others = [Submitted(b"0", (5,)), Submitted(b"new", (5,))]
    outcomes = Counter(commit(storage, seq, *SUBMISSIONS, *others))
    assert outcomes == {Outcome.DUPLICATE: 2 * HALF, Outcome.KEY_REUSED: 1, Outcome.CLOSED: 1}
    assert storage.rounds.tally(seq, 6).summary.tolist() == [HALF, HALF, 0, 0, 0, 0]


def test_closed_round_is_unlinked_once(storage: Storage) -> None:
    keeper = Housekeeping(storage)
    seq, other = open_round(storage), open_round(storage)
    fill(storage, seq)
    fill(storage, other)
    keeper.once()
    assert items_in_order(storage, seq) == ITEMS
    close_round(storage, seq)
    rows = 60 + 60 * (storage.database.dialect == "postgresql")
    assert storage.unlinking.remaining_rows() == rows
    keeper.once()
    assert (is_unlinked(storage, seq), is_unlinked(storage, other)) == (True, False)
    assert (storage.unlinking.remaining_rows(), keeper.rows_to_unlink) == (0, 0)
    unlinked = items_in_order(storage, seq)
    assert unlinked != ITEMS  # equal by chance once in 60! / 30!² = 10^17
    assert_unchanged(storage, seq)
    assert storage.unlinking.run().rows == 0
    assert items_in_order(storage, seq) == unlinked
    assert items_in_order(storage, other) == ITEMS


def test_unlinking_skips_rounds_of_missing_plugins(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, "theirs", type("Theirs", (GRR,), {"protocol": "theirs"}))
    theirs = fill_and_close(storage, RoundParameters("theirs", 1.0, PARAMETERS.items))
    ours = fill_and_close(storage)
    with monkeypatch.context() as unloaded:
        unloaded.delitem(PROTOCOLS, "theirs")
        assert storage.unlinking.run().done
        assert (is_unlinked(storage, theirs), is_unlinked(storage, ours)) == (False, True)
    assert storage.unlinking.run().done
    assert is_unlinked(storage, theirs)


@pytest.mark.postgres
def test_row_versions_and_places_do_not_link_keys_to_reports(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    fill(storage, seq)
    linked = sa.text("SELECT count(*) FROM keys JOIN segments ON keys.xmin = segments.xmin")
    placed = sa.select(submission_keys.c.key).order_by(sa.literal_column("ctid"))
    keys = [submitted.row(seq)["key"] for submitted in SUBMISSIONS]
    with storage.database.read() as connection:
        assert connection.scalar(linked) == 60
        assert connection.scalars(placed).all() == keys
    close_round(storage, seq)
    storage.unlinking.run()
    with storage.database.read() as connection:
        assert connection.scalar(linked) == 0
        assert connection.scalars(placed).all() == sorted(keys)


@pytest.mark.usefixtures("small_chunks")
def test_unlinking_continues_and_counts_agree_after_each_chunk(
    open_storage: OpenStorage, url: str
) -> None:
    storages = [open_storage(url) for _ in range(2)]
    seq = fill_and_close(storages[0])
    remaining = [storages[0].unlinking.remaining_rows()]
    while not storages[len(remaining) % 2].unlinking.run(for_chunks(3)).done:
        assert_unchanged(storages[0], seq)
        remaining.append(storages[0].unlinking.remaining_rows())
        assert len(remaining) < 40
    assert remaining == sorted(remaining, reverse=True)
    assert len(remaining) >= 4
    assert is_unlinked(storages[0], seq)
    assert_unchanged(storages[0], seq)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(
    "statement", ["INSERT INTO segments", "INSERT INTO keys", "UPDATE rounds SET", "COMMIT"]
)
def test_interrupted_unlinking_loses_and_doubles_nothing(
    open_storage: OpenStorage, url: str, statement: str
) -> None:
    """In whichever chunk it is interrupted."""
    storage = open_storage(url)
    if statement == "INSERT INTO keys" and storage.database.dialect == "sqlite":
        # Keys in a SQLite file lie in the order of the keys: they are not unlinked.
        statement = "DELETE FROM segments"
    seq = fill_and_close(storage)
    countdown = 0

    def count_down(connection: sa.Connection, cursor: object, text: str, *_: object) -> None:
        nonlocal countdown
        if is_write(connection) and text.strip().startswith(statement):
            countdown -= 1
            if countdown == 0:
                raise InterruptedError

    sa.event.listen(storage.database.engine, "before_cursor_execute", count_down)
    sa.event.listen(storage.database.engine, "commit", lambda c: count_down(c, None, "COMMIT"))
    interrupted = 0
    for attempt in range(100):
        countdown = attempt % 4 + 1
        try:
            if storage.unlinking.run(for_chunks(4)).done:
                break
        except InterruptedError:
            interrupted += 1
        countdown = 0
        assert_unchanged(storage, seq)
    assert interrupted >= 3
    countdown = 0
    assert storage.unlinking.run().done
    assert_unchanged(storage, seq)


def test_earlier_view_is_readable_during_and_after_unlinking(storage: Storage) -> None:
    """An iteration keeps its order. A view that was read before cannot be read again."""
    seq = open_round(storage)
    fill(storage, seq)
    early = storage.segments.reports(seq)
    close_round(storage, seq)
    before, during, begun = (storage.segments.reports(seq) for _ in range(3))
    assert items_of(begun) == ITEMS
    pieces = iter(during)
    first = next(pieces)
    storage.unlinking.run()
    assert sorted(items_of([first, *pieces])) == ITEMS
    for reports in (early, before):
        items = items_of(reports)
        assert sorted(items) == ITEMS
        assert items_of(reports) == items
    for reports in (during, begun):
        with pytest.raises(ReportsGoneError):
            list(reports)


def test_earlier_view_fails_if_reports_came_before_unlinking(storage: Storage) -> None:
    seq = open_round(storage)
    fill(storage, seq, FIRST)
    reports = storage.segments.reports(seq)
    fill(storage, seq, SECOND)
    close_round(storage, seq)
    storage.unlinking.run()
    with pytest.raises(ReportsGoneError):
        list(reports)


class Clock:
    """A clock that tests set."""

    now = datetime(2026, 1, 1, 10, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(open_storage: OpenStorage, fresh: str, clock: Clock) -> Storage:
    """A storage that reads the test's clock."""
    return open_storage(fresh, clock=clock)


def test_reports_of_different_hours_are_not_joined(timed: Storage, clock: Clock) -> None:
    """So retention still deletes each hour by itself."""
    seq = open_round(timed, retention=2)
    fill(timed, seq, FIRST)
    clock.now += HOUR
    fill(timed, seq, SECOND)
    close_round(timed, seq)
    assert timed.unlinking.run().done
    hours = sa.select(segments.c.hour, segments.c.n).order_by(segments.c.hour)
    with timed.database.read() as connection:
        rows = [tuple(row) for row in connection.execute(hours)]
    assert rows == [(timed.hour() - 1, HALF), (timed.hour(), HALF)]
    clock.now += 2 * HOUR
    assert timed.deletion.purge().rows == 1
    assert stored(timed, seq) == HALF * [1]
    assert timed.segments.evidence(seq, 6)[1] is False


@pytest.mark.usefixtures("small_chunks")
def test_unlinking_ends_after_the_last_segment_was_purged(timed: Storage, clock: Clock) -> None:
    """SQLite reuses the last segment's id, and the new segment counts as unlinked."""
    seq = open_round(timed, retention=1)
    clock.now += HOUR
    fill(timed, seq, FIRST)
    clock.now -= HOUR  # the clock is set back
    fill(timed, seq, SECOND)
    close_round(timed, seq)
    assert not timed.unlinking.run(for_chunks(1)).done
    clock.now += 2 * HOUR
    timed.deletion.purge()
    assert timed.unlinking.run(for_chunks(100)).done
    assert set(stored(timed, seq)) == {0}


@pytest.mark.usefixtures("small_chunks")
def test_segments_deleted_between_chunks_are_skipped(timed: Storage, clock: Clock) -> None:
    """They were drawn for unlinking, and then retention deleted them."""
    seq = open_round(timed, retention=1)
    fill(timed, seq)
    close_round(timed, seq)
    chunks = 0

    def purge_after_two() -> bool:
        nonlocal chunks
        chunks += 1
        if chunks == 3:
            clock.now += 3 * HOUR
            assert timed.deletion.purge().done
        return True

    assert timed.unlinking.run(purge_after_two).done
    assert chunks > 3
    assert stored(timed, seq) == []


def test_rounds_without_stored_reports_are_unlinked(storage: Storage) -> None:
    none, empty = open_round(storage, retention=0), open_round(storage)
    commit(storage, none, SUBMISSIONS[3])
    close_round(storage, none)
    close_round(storage, empty)
    assert storage.unlinking.run().done
    assert is_unlinked(storage, none)
    assert is_unlinked(storage, empty)
    assert commit(storage, none, SUBMISSIONS[3]) == [Outcome.DUPLICATE]

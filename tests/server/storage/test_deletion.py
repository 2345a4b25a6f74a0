"""Deletion and purges work in chunks, and their data leave the disk."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

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

from ldprecover_server.errors import (
    NoCurrentRoundError,
    ReportsGoneError,
    RoundNotFoundError,
    StoreUnavailableError,
)
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.rejections import Rejections
from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.backends.sqlite import SQLite
from ldprecover_server.storage.key_encoding import in_round
from ldprecover_server.storage.maintenance.chunks import HasTime, Progress
from ldprecover_server.storage.maintenance.deletion import Deletion
from ldprecover_server.storage.schema import rejections, rounds, segments, submission_keys, tallies

TABLES = (submission_keys, segments, tallies, rejections, rounds)


def name_of(storage: Storage, seq: int) -> str:
    with storage.database.read() as connection:
        return connection.scalars(sa.select(rounds.c.name).where(rounds.c.seq == seq)).one()


def fill(storage: Storage, seq: int, commits: int, each: int = 1) -> None:
    for i in range(commits):
        names = [b"%d-%d" % (i, j) for j in range(each)]
        storage.commit([Group(seq, [Submitted(name, (i % 6,)) for name in names])])


def rows_of(storage: Storage, seq: int) -> list[int]:
    with storage.database.read() as connection:
        mine = {table: table.c.round == seq for table in TABLES[1:-1]}
        mine |= {submission_keys: in_round(submission_keys.c.key, seq), rounds: rounds.c.seq == seq}
        return [
            connection.scalars(
                sa.select(sa.func.count()).select_from(table).where(mine[table])
            ).one()
            for table in TABLES
        ]


def pieces(most: int) -> Callable[[], bool]:
    """Let so many pieces be done."""
    left = [most]

    def go_on() -> bool:
        left[0] -= 1
        return left[0] >= 0

    return go_on


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten rows each, however long they take."""
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._LONG_SECONDS", 60.0)
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._FIRST_ROWS", 10)
    monkeypatch.setattr("ldprecover_server.storage.maintenance.chunks._MAX_ROWS", 10)


def mark_gone(monkeypatch: pytest.MonkeyPatch, storage: Storage, seq: int) -> None:
    """Delete a round without waiting for its rows to go."""
    with monkeypatch.context() as patched:
        patched.setattr("ldprecover_server.storage.maintenance.deletion._CALL_SECONDS", -1.0)
        storage.deletion.delete(name_of(storage, seq))


def test_deleted_round_is_gone_before_its_rows(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seq = open_round(storage)
    fill(storage, seq, 3)
    found, name = storage.rounds.find(name_of(storage, seq)), name_of(storage, seq)
    reports = storage.segments.reports(seq)
    mark_gone(monkeypatch, storage, seq)
    assert rows_of(storage, seq) == [3, 3, 1, 0, 1]
    for gone in (
        lambda: storage.rounds.find(name),
        lambda: storage.rounds.find(found.id),
        lambda: storage.rounds.find(f"!{seq}"),
        lambda: storage.rounds.parameters(seq),
        lambda: storage.rounds.tally(seq, 6),
        lambda: storage.segments.evidence(seq, 6),
        lambda: storage.segments.tally_and_reports(seq, 6),
        lambda: storage.segments.reports(seq),
        lambda: storage.rounds.close(name),
        lambda: storage.deletion.delete(name),
    ):
        with pytest.raises(RoundNotFoundError):
            gone()
    with pytest.raises(ReportsGoneError):
        list(reports)
    assert seq not in [each.seq for each in storage.rounds.page(1000)]
    for submitted in (
        Submitted(b"0-0", (0,)),
        Submitted(b"new", (1,)),
    ):  # sent again, and for the first time
        assert storage.commit([Group(seq, [submitted])]) == [[Outcome.GONE]]
    storage.rounds.add_rejections({(seq, "round-closed"): 1})
    again = storage.rounds.open(found.id, name, PARAMETERS)
    assert again.seq > seq
    assert storage.commit([Group(again.seq, [Submitted(b"0-0", (0,))])]) == [[Outcome.STORED]]
    assert rows_of(storage, seq) == [3, 3, 1, 0, 1]
    assert storage.deletion.delete_rest().done
    assert rows_of(storage, seq) == [0, 0, 0, 0, 0]
    assert storage.rounds.tally(again.seq, 6).n == 1


def test_deleting_a_round_stops_its_running_jobs(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seq = open_round(storage)
    fill(storage, seq, commits=1)
    storage.jobs.add("a" * 32, seq, keyed=False)
    mark_gone(monkeypatch, storage, seq)
    assert storage.deletion.rows_left()
    assert storage.jobs.heartbeat({"a" * 32: ("running", 0.5)}) == {"a" * 32}


def test_the_current_round_is_never_one_that_is_gone(
    open_storage: OpenStorage, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(fresh)
    first, second = open_round(storage), open_round(storage)
    mark_gone(monkeypatch, storage, second)
    assert storage.rounds.find("current").seq == first
    mark_gone(monkeypatch, storage, first)
    with pytest.raises(NoCurrentRoundError):
        storage.rounds.find("current")


@pytest.mark.usefixtures("small_pieces")
def test_rows_are_deleted_in_chunks_by_any_process(
    open_storage: OpenStorage, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece is a transaction; another round beside it loses nothing."""
    here, there = open_storage(fresh), open_storage(fresh)
    seq, other = open_round(here), open_round(here)
    fill(here, other, 5)
    fill(here, seq, 25, each=3)
    here.rounds.add_rejections({(seq, "round-closed"): 4})
    mark_gone(monkeypatch, here, seq)
    assert here.deletion.rows_left() == 75 + 25
    progress = here.deletion.delete_rest(pieces(2))
    assert (progress.rows, progress.done) == (20, False)
    assert there.deletion.rows_left() == 80
    progress = there.deletion.delete_rest(
        pieces(4)
    )  # ten segments at most, five left; then one that finds none; then keys
    assert (progress.rows, progress.done) == (25, False)
    assert rows_of(here, seq) == [55, 0, 1, 1, 1]
    assert here.deletion.delete_rest().done
    assert rows_of(here, seq) == [0, 0, 0, 0, 0]
    assert here.deletion.rows_left() == 0
    assert rows_of(here, other) == [5, 5, 1, 0, 1]


def test_purge_in_chunks_deletes_and_counts_expired_segments(
    open_storage: OpenStorage, fresh: str
) -> None:
    now = datetime(2026, 1, 1, 10, 30, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: now)
    seq = storage.rounds.open("R1", "one", PARAMETERS, retention=1).seq
    for_ever = open_round(storage)
    fill(storage, seq, 30)
    fill(storage, for_ever, 2)
    now += timedelta(hours=1)
    fill(storage, for_ever, 2)  # duplicates
    storage.commit([Group(seq, [Submitted(b"later", (5, 5))])])
    reports = storage.segments.reports(seq)
    assert (storage.deletion.purge().rows, storage.segments.evidence(seq, 6)[1]) == (0, True)
    assert sum(map(len, reports)) == 4 * 32
    now += timedelta(hours=1)
    progress = storage.deletion.purge(pieces(1))
    assert (progress.rows, progress.done) == (30, False)
    assert storage.deletion.purge().done
    assert stored(storage, seq) == [5, 5]
    assert storage.rounds.tally(seq, 6).n == 32
    assert storage.segments.evidence(seq, 6) == (storage.rounds.tally(seq, 6), False)
    assert storage.segments.evidence(for_ever, 6) == (storage.rounds.tally(for_ever, 6), True)
    assert storage.segments.reports(seq).n == 2
    assert b"".join(storage.segments.reports(seq)) == 2 * b"\5\0\0\0"
    with pytest.raises(ReportsGoneError):
        list(reports)


def test_a_round_that_keeps_no_report_is_never_complete(storage: Storage) -> None:
    seq = storage.rounds.open("Rnone", "none", PARAMETERS, retention=0).seq
    fill(storage, seq, 2)
    assert storage.segments.evidence(seq, 6)[1] is False
    assert (storage.segments.reports(seq).n, list(storage.segments.reports(seq))) == (0, [])


def test_rejections_of_a_round_under_deletion_are_dropped(
    open_storage: OpenStorage, fresh: str
) -> None:
    """They wait for the deletion, which they could not see when they began."""
    storage = open_storage(fresh)
    for _ in range(10):
        seq, other = open_round(storage), open_round(storage)
        begin = threading.Barrier(2)
        faults: list[BaseException] = []

        def refuse(seq: int = seq, other: int = other, begin: threading.Barrier = begin) -> None:
            try:
                begin.wait(30)
                for _ in range(20):
                    storage.rounds.add_rejections(
                        {(seq, "round-closed"): 1, (other, "round-closed"): 1}
                    )
            except BaseException as error:  # noqa: BLE001
                faults.append(error)  # noqa: B023

        thread = threading.Thread(target=refuse)
        thread.start()
        begin.wait(30)
        storage.deletion.delete(name_of(storage, seq))
        thread.join(60)
        assert faults == []
        assert storage.rounds.rejections(other) == {"round-closed": 20}
        assert storage.deletion.delete_rest().done
        assert rows_of(storage, seq) == [0, 0, 0, 0, 0]


@pytest.mark.postgres
def test_rejection_count_waits_for_a_deletion(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    with storage.database.write() as connection:
        connection.execute(
            sa.update(rounds).where(rounds.c.seq == seq).values(state="gone", name="!")
        )
        thread = threading.Thread(
            target=storage.rounds.add_rejections, args=[{(seq, "round-closed"): 1}]
        )
        thread.start()
        with storage.database.read() as watching:
            waits = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            while not watching.scalar(waits):
                assert thread.is_alive()
                watching.exec_driver_sql("SELECT pg_stat_clear_snapshot()")
    thread.join(60)
    assert rows_of(storage, seq) == [0, 0, 0, 0, 1]


@pytest.mark.sqlite
def test_deleted_data_leave_the_log_once_nobody_reads_it(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    keeper = Housekeeping(storage, Rejections(storage))
    seq = open_round(storage)
    fill(storage, seq, 3)
    assert isinstance(storage.database, SQLite)
    log = storage.database.path.with_name(storage.database.path.name + "-wal")
    with storage.database.read() as connection:
        connection.execute(sa.select(rounds)).all()
        storage.deletion.delete(name_of(storage, seq))
        assert not storage.deletion.is_erased
        assert keeper.once() is True
        assert log.stat().st_size > 0
    assert keeper.once() is False
    assert storage.deletion.is_erased
    assert log.stat().st_size == 0


class FailingDeletion(Deletion):
    """A deletion whose purge raises `fault`."""

    fault: Exception | None = None

    def purge(self, has_time: HasTime = lambda: True) -> Progress:
        if self.fault is not None:
            raise self.fault
        return super().purge(has_time)


@pytest.fixture
def failing(open_storage: OpenStorage, fresh: str) -> Storage:
    storage = open_storage(fresh)
    storage.deletion = FailingDeletion(storage.database, storage.clock)
    return storage


@pytest.mark.parametrize(
    "fault",
    [
        StoreUnavailableError("not now"),
        ZeroDivisionError(),
        sa.exc.IntegrityError("", [], ValueError()),
    ],
)
def test_error_in_one_task_does_not_stop_others(
    failing: Storage, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Housekeeping(failing, Rejections(failing))
    seq = open_round(failing)
    mark_gone(monkeypatch, failing, seq)
    deletion = failing.deletion
    assert isinstance(deletion, FailingDeletion)
    deletion.fault = fault
    keeper.once()
    assert rows_of(failing, seq) == [0, 0, 0, 0, 0]
    assert keeper.last_run is not None
    assert keeper.last_purge is None
    deletion.fault = None
    keeper.once()
    assert keeper.last_purge is not None

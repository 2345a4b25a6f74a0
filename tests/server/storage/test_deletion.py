"""Deletion works in chunks, and its data leave the disk."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import (
    PARAMETERS,
    OpenStorage,
    Submitted,
    commit,
    count_rows,
    for_chunks,
    name_of,
    open_round,
)

from ldprecover_server.errors import ReportsGoneError, RoundNotFoundError, StoreUnavailableError
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.encoding import in_round
from ldprecover_server.storage.maintenance.chunks import Progress
from ldprecover_server.storage.schema import rounds, segments, submission_keys, tallies

TABLES = (submission_keys, segments, tallies, rounds)


def fill(storage: Storage, seq: int, commits: int, each: int = 1) -> None:
    for i in range(commits):
        commit(storage, seq, *(Submitted(b"%d-%d" % (i, j), (i % 6,)) for j in range(each)))


def rows_of(storage: Storage, seq: int) -> list[int]:
    """Return the number of a round's rows in each of `TABLES`."""
    of_round = {table: table.c.round == seq for table in (segments, tallies)}
    of_round |= {submission_keys: in_round(submission_keys.c.key, seq), rounds: rounds.c.seq == seq}
    return [count_rows(storage, table, of_round[table]) for table in TABLES]


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
    name = name_of(storage, seq)
    id = storage.rounds.find(name).id
    reports = storage.segments.tally_and_reports(seq, 6)[1]
    mark_gone(monkeypatch, storage, seq)
    assert rows_of(storage, seq) == [3, 3, 1, 1]
    for call in (
        lambda: storage.rounds.find(name),
        lambda: storage.rounds.find(id),
        lambda: storage.rounds.find(f"!{seq}"),
        lambda: storage.rounds.parameters(seq),
        lambda: storage.rounds.tally([seq], 6),
        lambda: storage.segments.tally_and_reports(seq, 6),
        lambda: storage.rounds.close(name),
        lambda: storage.deletion.delete(name),
    ):
        with pytest.raises(RoundNotFoundError):
            call()
    with pytest.raises(ReportsGoneError):
        list(reports)
    assert seq not in [each.seq for each in storage.rounds.page(1000)]
    for submitted in (Submitted(b"0-0", (0,)), Submitted(b"new", (1,))):  # a retry and a new one
        assert commit(storage, seq, submitted) == [Outcome.GONE]
    again = storage.rounds.open(id, name, PARAMETERS)
    assert again.seq > seq
    assert commit(storage, again.seq, Submitted(b"0-0", (0,))) == [Outcome.STORED]
    assert rows_of(storage, seq) == [3, 3, 1, 1]
    assert storage.deletion.delete_rest().done
    assert rows_of(storage, seq) == [0, 0, 0, 0]
    assert storage.rounds.tally([again.seq], 6).n == 1


def test_deleted_round_is_never_the_current_one(
    open_storage: OpenStorage, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(fresh)
    first, second = open_round(storage), open_round(storage)
    mark_gone(monkeypatch, storage, second)
    assert storage.rounds.find("current").seq == first
    mark_gone(monkeypatch, storage, first)
    with pytest.raises(RoundNotFoundError):
        storage.rounds.find("current")


@pytest.mark.usefixtures("small_chunks")
def test_rows_are_deleted_in_chunks_by_any_process(
    open_storage: OpenStorage, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chunk is a transaction, and another round loses nothing."""
    one, two = open_storage(fresh), open_storage(fresh)
    seq, other = open_round(one), open_round(one)
    fill(one, other, 5)
    fill(one, seq, 21, each=3)
    mark_gone(monkeypatch, one, seq)
    assert one.deletion.remaining_rows() == 63 + 21
    assert one.deletion.delete_rest(for_chunks(2)) == Progress(16, False)
    assert two.deletion.remaining_rows() == 68
    # The last five segments, a chunk that finds none, and two chunks of keys.
    assert two.deletion.delete_rest(for_chunks(4)) == Progress(21, False)
    assert rows_of(one, seq) == [47, 0, 1, 1]
    assert one.deletion.delete_rest().done
    assert rows_of(one, seq) == [0, 0, 0, 0]
    assert one.deletion.remaining_rows() == 0
    assert rows_of(one, other) == [5, 5, 1, 1]


def test_round_of_retention_none_stores_no_reports(storage: Storage) -> None:
    seq = open_round(storage, retention="none")
    fill(storage, seq, 2)
    reports = storage.segments.tally_and_reports(seq, 6)[1]
    assert (reports.n, list(reports)) == (0, [])


@pytest.mark.sqlite
def test_deleted_data_leave_the_log_once_nobody_reads_it(
    open_storage: OpenStorage, fresh: str
) -> None:
    storage = open_storage(fresh)
    keeper = Housekeeping(storage)
    seq = open_round(storage)
    fill(storage, seq, 3)
    log = Path(f"{storage.database.name}-wal")
    with storage.database.read() as connection:
        connection.execute(sa.select(rounds)).all()
        storage.deletion.delete(name_of(storage, seq))
        assert not storage.deletion.is_erased
        assert keeper.once() is True
        assert log.stat().st_size > 0
    assert keeper.once() is False
    assert storage.deletion.is_erased
    assert log.stat().st_size == 0


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "fault", [StoreUnavailableError("not now"), sa.exc.IntegrityError("", [], ValueError())]
)
def test_error_in_one_task_does_not_stop_others(
    open_storage: OpenStorage, fresh: str, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(fresh)
    keeper = Housekeeping(storage)
    seq = open_round(storage)
    mark_gone(monkeypatch, storage, seq)

    def fail() -> None:
        raise fault

    monkeypatch.setattr(storage.database, "keep_claim", fail)
    keeper.once()
    assert rows_of(storage, seq) == [0, 0, 0, 0]
    assert keeper.last_run is not None

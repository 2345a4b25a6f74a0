"""A remembered tally is used only if no other process can have written it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import (
    OpenStorage,
    Submitted,
    count_rows,
    open_round,
    wait_for_locks,
)
from tests.server.storage.conftest import commit as commit_to

from ldprecover import Tally
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.storage import Outcome, Storage, StoredRound
from ldprecover_server.storage.encoding import in_round
from ldprecover_server.storage.schema import segments, submission_keys, tallies
from ldprecover_server.storage.tallies import encode_counts

HOLDERS = """
SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE datname = current_database() AND locktype = 'advisory' AND objid = {} AND granted
"""

END: dict[str, Callable[[Storage, str], StoredRound]] = {
    "close": lambda storage, name: storage.rounds.close(name),
    "delete": lambda storage, name: storage.deletion.delete(name),
}


def commit(storage: Storage, seq: int, name: str, *items: int) -> list[Outcome]:
    return commit_to(storage, seq, Submitted(name.encode(), items))


def rewind(storage: Storage, seq: int, names: list[str], tally: Tally) -> None:
    """Leave the rows of a standby that lost the last commits, with these names."""
    with storage.database.write() as connection:
        lost = submission_keys.c.key.in_(
            [Submitted(name.encode(), ()).row(seq)["key"] for name in names]
        )
        connection.execute(sa.delete(submission_keys).where(lost))
        newest = sa.select(segments.c.id).order_by(segments.c.id.desc()).limit(len(names))
        connection.execute(sa.delete(segments).where(segments.c.id.in_(newest)))
        connection.execute(sa.update(tallies).values(n=tally.n, counts=encode_counts(tally)))


def test_equal_count_after_failover_is_not_overwritten(
    open_storage: OpenStorage, fresh: str
) -> None:
    """The newcomer has the number of a running process, which remembers the lost commits."""
    survivor, newcomer = open_storage(fresh), open_storage(fresh)
    seq = open_round(survivor)
    for name, item in (("a", 0), ("b", 1), ("c", 2)):
        assert commit(survivor, seq, name, item) == [Outcome.STORED]
    rewind(survivor, seq, ["b", "c"], Tally(np.array([1, 0, 0, 0, 0, 0]), 1))
    for name in ("d", "e"):
        assert commit(newcomer, seq, name, 3) == [Outcome.STORED]
    assert commit(survivor, seq, "f", 4) == [Outcome.STORED]
    assert commit(newcomer, seq, "g", 5) == [Outcome.STORED]
    assert survivor.rounds.tally([seq], 6).summary.tolist() == [1, 0, 0, 2, 1, 1]


@pytest.mark.postgres
def test_new_connection_reads_the_tally_again(open_storage: OpenStorage, fresh: str) -> None:
    """The row has this process's number and token, but other counts."""
    storage = open_storage(fresh)
    seq = open_round(storage)
    for name in ("a", "b"):
        commit(storage, seq, name, 0)
    other = Tally(np.array([0, 2, 0, 0, 0, 0]), 2)
    with storage.database.write() as connection:
        connection.execute(sa.update(tallies).values(counts=encode_counts(other)))
    storage.database.engine.dispose()
    commit(storage, seq, "c", 2)
    assert storage.rounds.tally([seq], 6).summary.tolist() == [0, 2, 1, 0, 0, 0]


def end_session(storage: Storage) -> None:
    """End the session that has the process number 0."""
    with storage.database.write() as connection:
        pid = connection.exec_driver_sql(HOLDERS.format(0)).scalar_one()
        connection.exec_driver_sql(f"SELECT pg_terminate_backend({pid}, 5000)")


@pytest.mark.postgres
@pytest.mark.parametrize("taken", [False, True], ids=["free", "taken meanwhile"])
def test_lost_process_number_is_claimed_again(
    open_storage: OpenStorage, fresh: str, taken: bool
) -> None:
    one, two, three = (open_storage(fresh) for _ in range(3))
    one.database.claim()
    two.database.claim()
    seq = open_round(one)
    commit(one, seq, "a", 0)
    end_session(two)
    if taken:
        three.database.claim()
        assert three.database.process == 0
        commit(three, seq, "b", 1)
    Housekeeping(one).once()
    assert one.database.process == (2 if taken else 0)
    for storage, name in ((one, "c"), (two, "d"), (three, "e"), (one, "f")):
        assert commit(storage, seq, name, 2) == [Outcome.STORED]
    one.database.keep_claim()  # nothing was lost since
    with two.database.read() as connection:
        assert len(connection.exec_driver_sql(HOLDERS.format(one.database.process)).all()) == 1
        rows = connection.execute(
            sa.select(tallies.c.process, tallies.c.n).order_by(tallies.c.process)
        ).all()
    assert [tuple(row) for row in rows] == ([(0, 3), (1, 1), (2, 2)] if taken else [(0, 4), (1, 1)])


LATE = """
CREATE FUNCTION pg_try_advisory_xact_lock_shared(int, int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock(7); RETURN pg_catalog.pg_try_advisory_xact_lock_shared($1, $2);
END $$
"""
"""Makes a one-statement commit wait after it has read the round, before it takes the lock."""


def hold_segment(connection: sa.Connection, seq: int, name: str) -> None:
    """Make a one-statement commit wait after it has written its tally, for its segment's id."""
    last = connection.exec_driver_sql("SELECT last_value FROM segments_id_seq").scalar_one()
    connection.execute(sa.insert(segments).values(id=last + 1, round=seq, hour=0, n=0, data=b""))


@pytest.mark.postgres
@pytest.mark.parametrize(("end", "late"), [("close", Outcome.CLOSED), ("delete", Outcome.GONE)])
def test_commit_overtaken_by_the_end_of_its_round_stores_nothing(
    open_storage: OpenStorage, fresh: str, end: str, late: Outcome
) -> None:
    two = open_storage(fresh)
    with two.database.write() as connection:
        connection.exec_driver_sql(LATE)
        database = connection.exec_driver_sql("SELECT current_database()").scalar_one()
        connection.exec_driver_sql(
            f"ALTER DATABASE {database} SET search_path = public, pg_catalog"
        )
    one = open_storage(fresh)
    seq = open_round(one)
    name = one.rounds.page(1)[0].name
    commit(one, seq, "a", 0)
    with ThreadPoolExecutor(1) as pool:
        with two.database.write() as lock:
            lock.exec_driver_sql("SELECT pg_advisory_xact_lock(7)")
            committing = pool.submit(commit, one, seq, "b", 1)
            wait_for_locks(two, committing)
            END[end](two, name)  # is answered before the commit continues
            if end == "close":
                assert two.rounds.find(name).n == 1
        assert committing.result(30) == [late]
    assert one.deletion.delete_rest().done
    if end == "close":
        assert one.rounds.tally([seq], 6).n == 1
    expected = 1 if end == "close" else 0
    assert count_rows(one, segments, segments.c.round == seq) == expected
    assert count_rows(one, submission_keys, in_round(submission_keys.c.key, seq)) == expected


@pytest.mark.postgres
@pytest.mark.parametrize("end", ["close", "delete"])
def test_ending_a_round_waits_for_a_commit_under_way(
    open_storage: OpenStorage, fresh: str, end: str
) -> None:
    one, two = open_storage(fresh), open_storage(fresh)
    seq = open_round(one)
    name = one.rounds.page(1)[0].name
    commit(one, seq, "a", 0)
    with ThreadPoolExecutor(2) as pool:
        with two.database.write() as lock:
            hold_segment(lock, seq, "b")
            committing = pool.submit(commit, one, seq, "b", 1)
            wait_for_locks(two, committing)
            ending = pool.submit(END[end], two, name)
            wait_for_locks(two, committing, ending)
            lock.rollback()
        assert committing.result(30) == [Outcome.STORED]
        assert ending.result(30).n == {"close": 2, "delete": 1}[end]


@pytest.mark.postgres
def test_one_statement_commits_do_not_lock_their_round(
    open_storage: OpenStorage, fresh: str
) -> None:
    """Postgres would write a MultiXact for every set of lockers."""
    one, two = open_storage(fresh), open_storage(fresh)
    one.database.process, two.database.process = 0, 1
    seq = open_round(one)
    for storage, name in ((one, "a"), (two, "b")):
        commit(storage, seq, name, 0)
    locked = sa.text("SELECT xmax::text FROM rounds WHERE seq = :seq")
    with one.database.read() as connection:
        before = connection.scalar(locked, {"seq": seq})
    for storage, name in ((one, "c"), (two, "d")):
        commit(storage, seq, name, 0)
    with one.database.read() as connection:
        assert connection.scalar(locked, {"seq": seq}) == before

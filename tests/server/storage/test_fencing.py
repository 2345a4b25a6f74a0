"""A remembered tally is used only if no other process can have written it."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import Group, OpenStorage, Submitted, open_round

from ldprecover import Tally
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.rejections import Rejections
from ldprecover_server.storage import Outcome, Storage, StoredRound
from ldprecover_server.storage.key_encoding import in_round
from ldprecover_server.storage.schema import segments, submission_keys, tallies
from ldprecover_server.storage.tally_encoding import encode_counts

HOLDERS = """
SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE datname = current_database() AND locktype = 'advisory' AND objid = {} AND granted
"""

END: dict[str, Callable[[Storage, str], StoredRound]] = {
    "close": lambda storage, name: storage.rounds.close(name),
    "delete": lambda storage, name: storage.deletion.delete(name),
}


def commit(storage: Storage, seq: int, name: str, *items: int) -> list[Outcome]:
    return storage.commit([Group(seq, [Submitted(name.encode(), items)])])[0]


def rewind(storage: Storage, seq: int, lost: list[str], left: Tally) -> None:
    """Leave the rows as a standby has them that did not receive the last commits."""
    with storage.database.write() as connection:
        these = submission_keys.c.key.in_([Submitted(n.encode(), ()).row(seq)["key"] for n in lost])
        connection.execute(sa.delete(submission_keys).where(these))
        newest = (
            sa.select(segments.c.id).where(segments.c.round == seq).order_by(segments.c.id.desc())
        )
        connection.execute(sa.delete(segments).where(segments.c.id.in_(newest.limit(len(lost)))))
        connection.execute(sa.update(tallies).values(n=left.n, counts=encode_counts(left)))


def test_equal_count_after_failover_is_not_overwritten(
    open_storage: OpenStorage, fresh: str
) -> None:
    """It has the number of a process that still runs, and remembers more than was kept."""
    survivor, newcomer = open_storage(fresh), open_storage(fresh)
    seq = open_round(survivor)
    for name, item in (("a", 0), ("b", 1), ("c", 2)):
        assert commit(survivor, seq, name, item) == [Outcome.STORED]
    rewind(survivor, seq, ["b", "c"], Tally(np.array([1, 0, 0, 0, 0, 0]), 1))
    for name in ("d", "e"):
        assert commit(newcomer, seq, name, 3) == [Outcome.STORED]
    assert commit(survivor, seq, "f", 4) == [Outcome.STORED]
    assert commit(newcomer, seq, "g", 5) == [Outcome.STORED]
    assert survivor.rounds.tally(seq, 6).summary.tolist() == [1, 0, 0, 2, 1, 1]


@pytest.mark.postgres
def test_new_connection_reads_the_tally_again(open_storage: OpenStorage, fresh: str) -> None:
    """Counts stand there that no process could have left, with the number and token of this
    one's.
    """
    storage = open_storage(fresh)
    seq = open_round(storage)
    for name in ("a", "b"):
        commit(storage, seq, name, 0)
    other = Tally(np.array([0, 2, 0, 0, 0, 0]), 2)
    with storage.database.write() as connection:
        connection.execute(sa.update(tallies).values(counts=encode_counts(other)))
    storage.database.engine.dispose()
    commit(storage, seq, "c", 2)
    assert storage.rounds.tally(seq, 6).summary.tolist() == [0, 2, 1, 0, 0, 0]


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
    with two.database.write() as connection:
        pid = connection.exec_driver_sql(HOLDERS.format(0)).scalar_one()
        connection.exec_driver_sql(f"SELECT pg_terminate_backend({pid}, 5000)")
    if taken:
        three.database.claim()
        assert three.database.process == 0
        commit(three, seq, "b", 1)
    one.database.keep_claim()
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


@pytest.mark.postgres
def test_housekeeping_takes_a_lost_number_again(open_storage: OpenStorage, fresh: str) -> None:
    one, two = open_storage(fresh), open_storage(fresh)
    one.database.claim()
    keeper = Housekeeping(one, Rejections(one))
    with two.database.write() as connection:
        pid = connection.exec_driver_sql(HOLDERS.format(0)).scalar_one()
        connection.exec_driver_sql(f"SELECT pg_terminate_backend({pid}, 5000)")
    keeper.once()
    with two.database.read() as connection:
        assert len(connection.exec_driver_sql(HOLDERS.format(0)).all()) == 1


LATE = """
CREATE FUNCTION pg_try_advisory_xact_lock_shared(int, int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock(7); RETURN pg_catalog.pg_try_advisory_xact_lock_shared($1, $2);
END $$
"""
"""Makes a usual commit wait once it has seen the round as it is, before it may be waited for."""


def hold_segment(connection: sa.Connection, seq: int, name: str) -> None:
    """Make a usual commit wait once it has written its tally: its segment's id is taken."""
    last = connection.exec_driver_sql("SELECT last_value FROM segments_id_seq").scalar_one()
    connection.execute(sa.insert(segments).values(id=last + 1, round=seq, hour=0, n=0, data=b""))


def wait_for_locks(storage: Storage, *waiting: "Future[Any]") -> None:
    """Wait until so many wait for a lock, and none of them has ended instead."""
    waits = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
        "wait_event_type = 'Lock'"
    )
    with storage.database.read() as watching:
        while watching.scalar(waits) != len(waiting):
            assert not any(each.done() for each in waiting)
            watching.exec_driver_sql("SELECT pg_stat_clear_snapshot()")


@pytest.mark.postgres
@pytest.mark.parametrize(("end", "late"), [("close", Outcome.CLOSED), ("delete", Outcome.GONE)])
def test_commit_overtaken_by_the_end_of_its_round_stores_nothing(
    open_storage: OpenStorage, fresh: str, end: str, late: Outcome
) -> None:
    there = open_storage(fresh)
    with there.database.write() as connection:
        connection.exec_driver_sql(LATE)
        database = connection.exec_driver_sql("SELECT current_database()").scalar_one()
        connection.exec_driver_sql(
            f"ALTER DATABASE {database} SET search_path = public, pg_catalog"
        )
    here = open_storage(fresh)
    seq = open_round(here)
    name = here.rounds.page(1)[0].name
    commit(here, seq, "a", 0)
    with ThreadPoolExecutor(1) as pool:
        with there.database.write() as held:
            held.exec_driver_sql("SELECT pg_advisory_xact_lock(7)")
            ours = pool.submit(commit, here, seq, "b", 1)
            wait_for_locks(there, ours)
            END[end](there, name)  # is answered before the commit continues
            if end == "close":
                assert there.rounds.find(name).n == 1
        assert ours.result(30) == [late]
    assert here.deletion.delete_rest().done
    if end == "close":
        assert here.rounds.tally(seq, 6).n == 1
    with here.database.read() as connection:
        left = 0 if end == "delete" else 1
        for table, mine in (
            (segments, segments.c.round == seq),
            (submission_keys, in_round(submission_keys.c.key, seq)),
        ):
            assert (
                connection.scalars(sa.select(sa.func.count()).select_from(table).where(mine)).one()
                == left
            )


@pytest.mark.postgres
@pytest.mark.parametrize("end", ["close", "delete"])
def test_ending_a_round_waits_for_a_commit_under_way(
    open_storage: OpenStorage, fresh: str, end: str
) -> None:
    here, there = open_storage(fresh), open_storage(fresh)
    seq = open_round(here)
    name = here.rounds.page(1)[0].name
    commit(here, seq, "a", 0)
    with ThreadPoolExecutor(2) as pool:
        with there.database.write() as held:
            hold_segment(held, seq, "b")
            ours = pool.submit(commit, here, seq, "b", 1)
            wait_for_locks(there, ours)
            ended = pool.submit(END[end], there, name)
            wait_for_locks(there, ours, ended)
            held.rollback()
        assert ours.result(30) == [Outcome.STORED]
        assert ended.result(30).n == {"close": 2, "delete": 1}[end]


@pytest.mark.postgres
def test_one_statement_commits_do_not_lock_their_round(
    open_storage: OpenStorage, fresh: str
) -> None:
    """Where they lock it together, each combination of them is written down, for as long as any row
    may name it.
    """
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

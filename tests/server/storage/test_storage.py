"""The storage: durable, exactly once, and nothing in it that links a person to a report."""

import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from tests.server.storage.conftest import (
    PARAMETERS,
    Group,
    OpenStorage,
    Submitted,
    open_round,
    stored,
)

from ldprecover import RoundParameters, Tally
from ldprecover_server.errors import (
    ConfigurationError,
    NameTakenError,
    NoCurrentRoundError,
    RoundNotFoundError,
    StoreUnavailableError,
)
from ldprecover_server.storage import Outcome, SealedBatch, Storage
from ldprecover_server.storage.backends.sqlite import SQLite
from ldprecover_server.storage.key_encoding import in_round
from ldprecover_server.storage.schema import submission_keys, tallies
from ldprecover_server.storage.tally_encoding import encode_counts

IMPATIENT = {"sqlite": "PRAGMA busy_timeout=1", "postgresql": "SET SESSION lock_timeout = 1"}
HOLD = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT FROM rounds FOR UPDATE"}


@pytest.mark.sqlite
def test_connections_are_durable_and_wait_for_locks(storage: Storage) -> None:
    """PRAGMAs belong to connections, so they are read back from several at once, and from other
    threads.
    """

    def pragmas() -> tuple[object, ...]:
        meet.wait()
        with storage.database.read() as connection:
            names = ("synchronous", "journal_mode", "foreign_keys", "busy_timeout")
            found = tuple(
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names
            )
            meet.wait()
            return found

    meet = threading.Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        found = [future.result() for future in [pool.submit(pragmas) for _ in range(6)]]
    full = 2
    assert found == 6 * [(full, "wal", 1, 10_000)]
    with ExitStack() as stack:
        open_ones = [stack.enter_context(storage.database.engine.connect()) for _ in range(6)]
        assert [c.exec_driver_sql("PRAGMA synchronous").scalar_one() for c in open_ones] == 6 * [
            full
        ]


@pytest.mark.sqlite
def test_a_write_holds_the_lock_from_its_beginning(storage: Storage) -> None:
    """Or the state it reads could change before it writes."""
    assert isinstance(storage.database, SQLite)
    with closing(sqlite3.connect(storage.database.path, timeout=0, isolation_level=None)) as other:
        with storage.database.write():
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            other.execute("BEGIN").fetchall()
            other.execute("SELECT count(*) FROM rounds").fetchall()
            other.execute("ROLLBACK")
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")


def test_a_read_sees_one_moment(storage: Storage) -> None:
    seq = open_round(storage)
    mine = in_round(submission_keys.c.key, seq)
    count = sa.select(sa.func.count()).select_from(submission_keys).where(mine)
    with storage.database.read() as connection:
        assert connection.scalar(count) == 0
        storage.commit([Group(seq, [Submitted(b"k", (1,))])])
        assert connection.scalar(count) == 0
    with storage.database.read() as connection:
        assert connection.scalar(count) == 1


def test_a_write_that_fails_leaves_nothing(storage: Storage) -> None:
    seq = open_round(storage)

    class Torn(Group):
        def seal(self, fresh: Sequence[int]) -> SealedBatch:
            raise ZeroDivisionError

    whole = Group(open_round(storage), [Submitted(b"a", (1,))])
    with pytest.raises(ZeroDivisionError):
        storage.commit([whole, Torn(seq, [Submitted(b"b", (2,))])])
    for group in (whole, Group(seq, [Submitted(b"b", (2,))])):
        assert stored(storage, group.seq) == []
        assert storage.commit([group]) == [[Outcome.STORED]]


def test_the_same_commit_again_finds_everything_stored(storage: Storage) -> None:
    seq = open_round(storage)
    group = Group(seq, [Submitted(b"a", (1, 2)), Submitted(b"b", (3,)), Submitted(b"a", (1, 2))])
    assert storage.commit([group]) == [[Outcome.STORED, Outcome.STORED, Outcome.DUPLICATE]]
    for _ in range(3):
        assert storage.commit([group]) == [3 * [Outcome.DUPLICATE]]
    assert storage.rounds.tally(seq, 6) == Tally.of(
        PARAMETERS.oracle, np.array([1, 2, 3], dtype="<u4")
    )
    assert stored(storage, seq) == [1, 2, 3]


def test_group_over_several_rounds_keeps_its_order(storage: Storage) -> None:
    first, second, closed, gone = (open_round(storage) for _ in range(4))
    with storage.database.write() as connection:
        connection.execute(
            sa.text("UPDATE rounds SET state = 'closed' WHERE seq = :seq"), {"seq": closed}
        )
        connection.execute(sa.text("DELETE FROM rounds WHERE seq = :seq"), {"seq": gone})
    groups = [
        Group(second, [Submitted(b"a", (1,)), Submitted(b"b", (2,))]),
        Group(gone, [Submitted(b"a", (1,))]),
        Group(first, [Submitted(b"a", (3,)), Submitted(b"a", (4,))]),
        Group(closed, [Submitted(b"c", (5,)), Submitted(b"d", (5,))]),
    ]
    assert storage.commit(groups) == [
        [Outcome.STORED, Outcome.STORED],
        [Outcome.GONE],
        [Outcome.STORED, Outcome.KEY_REUSED],
        [Outcome.CLOSED, Outcome.CLOSED],
    ]
    assert [stored(storage, seq) for seq in (first, second, closed)] == [[3], [1, 2], []]


def test_largest_group_is_stored_and_found_again(open_storage: OpenStorage, fresh: str) -> None:
    """66,000 submissions: Postgres takes 65,535 parameters in a statement, SQLite 32,766 unless
    told otherwise.
    """
    storage = open_storage(fresh)
    limit = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER
    if storage.database.dialect == "sqlite":
        event.listen(
            storage.database.engine,
            "connect",
            lambda connection, record: connection.setlimit(limit, 32_766),
        )
        storage.database.engine.dispose()
    seq = open_round(storage)
    group = Group(seq, [Submitted(i.to_bytes(16, "little"), (i % 6,)) for i in range(66_000)])
    assert set(storage.commit([group])[0]) == {Outcome.STORED}
    assert set(storage.commit([group])[0]) == {Outcome.DUPLICATE}
    assert storage.rounds.tally(seq, 6).n == 66_000


groups_of_submissions = st.lists(
    st.lists(
        st.builds(
            Submitted,
            name=st.sampled_from([b"a", b"b", b"c", b"d"]),
            items=st.sampled_from([(0,), (1,), (1, 2), (2, 1), (5, 5, 5)]),
        ),
        min_size=1,
        max_size=6,
    )
    | st.just("close"),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(steps=groups_of_submissions)
def test_any_history_of_a_round_is_that_of_a_dictionary(
    storage: Storage, steps: list[list[Submitted] | str]
) -> None:
    """Whatever is sent under whatever key in whatever groups: the first bytes under a key count,
    once.
    """
    seq = open_round(storage)
    model: dict[bytes, tuple[int, ...]] = {}
    state = "open"
    for step in steps:
        if isinstance(step, str):
            with storage.database.read() as connection:
                name = connection.scalar(
                    sa.text("SELECT name FROM rounds WHERE seq = :seq"), {"seq": seq}
                )
            assert storage.rounds.close(str(name)).state == "closed"
            state = "closed"
            continue
        expected = []
        for submitted in step:
            if submitted.key not in model:
                expected.append(Outcome.STORED if state == "open" else Outcome.CLOSED)
                if state == "open":
                    model[submitted.key] = submitted.items
            elif model[submitted.key] == submitted.items:
                expected.append(Outcome.DUPLICATE)
            else:
                expected.append(Outcome.KEY_REUSED)
        assert storage.commit([Group(seq, step)]) == [expected]
        reports = sorted(item for items in model.values() for item in items)
        assert stored(storage, seq) == reports
        assert storage.rounds.tally(seq, 6) == Tally.of(
            PARAMETERS.oracle, np.array(reports, dtype="<u4")
        )


def test_tallies_of_several_processes_add(open_storage: OpenStorage, fresh: str) -> None:
    one, two = (open_storage(fresh) for _ in range(2))
    two.database.process = 1
    seq = open_round(one)
    assert one.commit([Group(seq, [Submitted(b"a", (1,))])]) == [[Outcome.STORED]]
    again = Group(seq, [Submitted(b"a", (1,)), Submitted(b"b", (2, 2))])
    assert two.commit([again]) == [[Outcome.DUPLICATE, Outcome.STORED]]
    assert (
        one.rounds.tally(seq, 6).summary.tolist()
        == two.rounds.tally(seq, 6).summary.tolist()
        == [0, 1, 2, 0, 0, 0]
    )
    with one.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT process, n FROM tallies ORDER BY process").all()
    assert [tuple(row) for row in rows] == [(0, 1), (1, 2)]


def test_processes_sharing_a_number_still_count_everything(
    open_storage: OpenStorage, fresh: str
) -> None:
    """What a process remembers of the row that it wrote is no longer so."""
    storages = [open_storage(fresh) for _ in range(2)]
    seq = open_round(storages[0])
    for i in range(12):
        submitted = Submitted(b"%d" % i, (i % 6,))
        assert storages[i % 5 % 2].commit([Group(seq, [submitted])]) == [[Outcome.STORED]]
    assert storages[0].rounds.tally(seq, 6).summary.tolist() == 6 * [2]
    with storages[0].database.read() as connection:
        assert connection.exec_driver_sql("SELECT process, n FROM tallies").all() == [(0, 12)]


def test_failed_commit_is_not_remembered(storage: Storage) -> None:
    class Torn(Group):
        def seal(self, fresh: Sequence[int]) -> SealedBatch:
            raise ZeroDivisionError

    first, second = open_round(storage), open_round(storage)
    storage.commit([Group(first, [Submitted(b"a", (1,))])])
    with pytest.raises(ZeroDivisionError):
        storage.commit(
            [Group(first, [Submitted(b"b", (2,))]), Torn(second, [Submitted(b"b", (2,))])]
        )
    # As many reports as the torn commit would have written, but others.
    storage.commit([Group(first, [Submitted(b"c", (3,))])])
    storage.commit([Group(first, [Submitted(b"d", (4,))])])
    assert storage.rounds.tally(first, 6).summary.tolist() == [0, 1, 0, 1, 1, 0]


def test_one_statement_commits_or_stores_nothing(open_storage: OpenStorage, fresh: str) -> None:
    """Keys that are taken, a closed round and another's tally stop it; what stands then is the
    longer way's alone.
    """
    here, there = open_storage(fresh), open_storage(fresh)
    seq = open_round(here)
    statements: list[str] = []
    event.listen(
        here.database.engine, "before_cursor_execute", lambda *call: statements.append(call[2])
    )

    def commit(*submissions: Submitted) -> list[Outcome]:
        statements.clear()
        return here.commit([Group(seq, submissions)])[0]

    commit(Submitted(b"a", (0,)))
    assert len(statements) > 1  # there was no tally
    commit(Submitted(b"i", (0,)))  # may take the connection that is kept
    assert commit(Submitted(b"b", (1,)), Submitted(b"c", (1, 2))) == 2 * [Outcome.STORED]
    assert not statements, "it goes past the engine, by a connection that is kept for it"

    taken = (Submitted(b"c", (1, 2)), Submitted(b"d", (3,)))
    assert commit(*taken) == [Outcome.DUPLICATE, Outcome.STORED]
    assert len(statements) > 1
    assert commit(Submitted(b"e", (3,)), Submitted(b"e", (4,))) == [
        Outcome.STORED,
        Outcome.KEY_REUSED,
    ]
    assert there.commit([Group(seq, [Submitted(b"f", (4,))])]) == [
        [Outcome.STORED]
    ]  # under this process's number
    assert commit(Submitted(b"g", (4,))) == [Outcome.STORED]
    assert stored(here, seq) == [0, 0, 1, 1, 2, 3, 3, 4, 4]
    assert here.rounds.tally(seq, 6).summary.tolist() == [2, 2, 1, 2, 2, 0]

    with here.database.read() as connection:
        name = connection.scalar(sa.text("SELECT name FROM rounds"))
    there.rounds.close(str(name))
    assert commit(Submitted(b"h", (5,)), Submitted(b"a", (0,))) == [
        Outcome.CLOSED,
        Outcome.DUPLICATE,
    ]
    assert here.rounds.tally(seq, 6).n == 9


@pytest.mark.postgres
@pytest.mark.parametrize("taken", ["key", "tally"])
def test_concurrent_change_rolls_the_statement_back(
    open_storage: OpenStorage, fresh: str, taken: str
) -> None:
    """The commit waits for the other's, which it could not see when it began; then it is done
    again.
    """
    here, there = open_storage(fresh), open_storage(fresh)
    seq = open_round(here)
    here.commit([Group(seq, [Submitted(b"a", (0,))])])
    theirs = Submitted(b"b", (1,))
    steps = {
        "key": sa.insert(submission_keys).values(theirs.row(seq)),
        "tally": sa.update(tallies).values(
            n=2, counts=encode_counts(Tally(np.array([2, 0, 0, 0, 0, 0]), 2))
        ),
    }
    with ThreadPoolExecutor(1) as pool:
        with there.database.write() as connection:
            connection.execute(steps[taken])
            ours = pool.submit(
                here.commit, [Group(seq, [Submitted(b"b", (1,)), Submitted(b"c", (2,))])]
            )
            with here.database.read() as watching:
                waits = sa.text(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                )
                while not watching.scalar(waits):
                    assert not ours.done()
                    watching.exec_driver_sql("SELECT pg_stat_clear_snapshot()")
        outcome = {"key": Outcome.DUPLICATE, "tally": Outcome.STORED}[taken]
        assert ours.result(30) == [[outcome, Outcome.STORED]]
    assert stored(here, seq) == {"key": [0, 2], "tally": [0, 1, 2]}[taken]
    assert (
        here.rounds.tally(seq, 6).summary.tolist()
        == {"key": [1, 0, 1, 0, 0, 0], "tally": [2, 1, 1, 0, 0, 0]}[taken]
    )


def test_counts_take_four_bytes_and_eight_from_2_to_the_32(
    storage: Storage,
) -> None:
    """The row is written first, then added to in the longer way and at once, on either side of 2³²
    reports.
    """

    @dataclass(frozen=True)
    class Counted(Group):
        tally: Tally

        def seal(self, fresh: Sequence[int]) -> SealedBatch:
            return SealedBatch(b"", self.tally)

    seq = storage.rounds.open("R4", "four", PARAMETERS, retention=0).seq
    query = sa.select(tallies.c.counts).where(tallies.c.round == seq)
    other = Group(open_round(storage), [Submitted(b"other", (0,))])
    found = []
    for i, n in enumerate((300, 2**31 - 1, 2**31 - 300, 1)):
        tally = Tally(np.array([0, 0, 0, 0, n // 2, n]), n)
        group = Counted(seq, [Submitted(b"%d" % i, (0,))], tally)
        assert storage.commit([group, other] if i == 1 else [group])[0] == [Outcome.STORED]
        with storage.database.read() as connection:
            found.append(connection.scalars(query).one())
    assert found[0] == bytes(16) + bytes([150, 0, 0, 0, 44, 1, 0, 0])
    assert [len(counts) for counts in found] == [24, 24, 24, 48]
    assert found[3][-8:] == (2**32).to_bytes(8, "little")
    assert storage.rounds.tally(seq, 6) == Tally(np.array([0, 0, 0, 0, 2**31 - 1, 2**32]), 2**32)


def test_nothing_stored_tells_who_reported_what_or_when(
    open_storage: OpenStorage, fresh: str
) -> None:
    """Key rows hold neither time nor place; a segment's time is its hour."""
    moment = datetime(2024, 5, 13, 10, 59, 59, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: moment)
    storage.commit([Group(open_round(storage), [Submitted(b"b", (1,)), Submitted(b"a", (2,))])])
    with storage.database.read() as connection:
        hours = connection.exec_driver_sql("SELECT hour FROM segments").scalars().all()
        assert hours == [datetime(2024, 5, 13, 10, tzinfo=UTC).timestamp() // 3600]
        columns = {
            table: sa.inspect(connection).get_columns(table) for table in ("keys", "segments")
        }
        assert [column["name"] for column in columns["keys"]] == ["key", "digest"]
        assert [column["name"] for column in columns["segments"]] == [
            "id",
            "round",
            "hour",
            "n",
            "data",
        ]


@pytest.mark.sqlite
def test_key_rows_have_no_rowid(storage: Storage) -> None:
    with (
        storage.database.read() as connection,
        pytest.raises(sa.exc.OperationalError, match="rowid"),
    ):
        connection.exec_driver_sql("SELECT rowid FROM keys")


def test_rounds_survive_reopening_the_database(open_storage: OpenStorage, fresh: str) -> None:
    parameters = RoundParameters("olh", 0.1 + 0.2, ("Łódź", "\U0001f600", "a  b"), 7)
    before = open_storage(fresh)
    opened = before.rounds.open("R1", "one", parameters)
    before.close()
    storage = open_storage(fresh)
    assert (
        storage.rounds.find("one")
        == storage.rounds.find("R1")
        == storage.rounds.find("current")
        == opened
    )
    assert storage.rounds.parameters(opened.seq) == parameters
    with pytest.raises(NameTakenError):
        storage.rounds.open("R2", "one", parameters)
    storage.deletion.delete("R1")
    with pytest.raises(RoundNotFoundError):
        storage.rounds.find("one")
    with pytest.raises(RoundNotFoundError):
        storage.rounds.parameters(opened.seq)
    with pytest.raises(NoCurrentRoundError):
        storage.rounds.find("current")


def test_sequence_numbers_are_never_reused(open_storage: OpenStorage, fresh: str) -> None:
    """Or a submission on its way to the one that is gone would land in the next."""
    storage = open_storage(fresh)
    for _ in range(3):
        opened = storage.rounds.open("R1", "one", PARAMETERS)
        storage.deletion.delete("R1")
        again = storage.rounds.open("R1", "one", PARAMETERS)
        assert again.seq > opened.seq
        assert storage.commit([Group(opened.seq, [Submitted(b"k", (1,))])]) == [[Outcome.GONE]]
        storage.deletion.delete("R1")


def test_rejects_database_of_another_schema(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    storage.prepare()
    with storage.database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigurationError, match="schema 9999, of a newer version"):
        storage.prepare()
    with storage.database.read() as connection:
        assert connection.exec_driver_sql(
            "SELECT version_num FROM alembic_version"
        ).scalars().all() == ["9999"]


@pytest.mark.sqlite
def test_a_file_that_is_no_database_is_refused_in_words(
    open_storage: OpenStorage, tmp_path: Path
) -> None:
    path = tmp_path / "ldprecover.db"
    path.write_bytes(b"item,count\n" * 1000)
    with pytest.raises(ConfigurationError, match="not a database of SQLite"):
        open_storage(f"sqlite:///{path}")
    assert path.read_bytes() == b"item,count\n" * 1000


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "file"),
        ("sqlite:///:memory:", "file"),
        ("mysql://localhost/x", "sqlite"),
        ("nonsense", "URL"),
        ("sqlite:////no/such/folder/x.db", "folder"),
    ],
)
def test_rejects_unsuitable_databases(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Storage(url)


def test_a_database_that_stays_locked_is_unavailable(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    event.listen(
        storage.database.engine,
        "connect",
        lambda c, record: c.execute(IMPATIENT[storage.database.dialect]),
    )
    storage.database.engine.dispose()
    group = Group(seq, [Submitted(b"a", (1,))])
    # SQLite's transaction holds the whole file, Postgres's what closing a round holds.
    holder = sa.create_engine(fresh, poolclass=sa.NullPool)
    with holder.connect() as other:
        other.exec_driver_sql(HOLD[storage.database.dialect])
        with pytest.raises(StoreUnavailableError):
            storage.commit([group])
        other.rollback()
    assert storage.commit([group]) == [[Outcome.STORED]]

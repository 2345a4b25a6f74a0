"""The storage: durable, exactly once, and nothing in it that links a person to a report."""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import Any

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
    close_round,
    commit,
    count_rows,
    open_round,
    stored,
    wait_for_locks,
)

from ldprecover import RoundParameters, Tally
from ldprecover_server.errors import (
    ConfigurationError,
    NameTakenError,
    StoreUnavailableError,
)
from ldprecover_server.storage import Outcome, Storage, decode_labels
from ldprecover_server.storage.backends.sqlite import SQLite
from ldprecover_server.storage.encoding import in_round
from ldprecover_server.storage.schema import submission_keys, tallies
from ldprecover_server.storage.tallies import encode_counts

IMPATIENT = {"sqlite": "PRAGMA busy_timeout=1", "postgresql": "SET SESSION lock_timeout = 1"}
HOLD = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT FROM rounds FOR UPDATE"}


@pytest.mark.sqlite
def test_connections_are_durable_and_wait_for_locks(storage: Storage) -> None:
    """PRAGMAs belong to connections, so those of several open connections are read."""
    full = 2
    with ExitStack() as stack:
        for _ in range(6):
            connection = stack.enter_context(storage.database.engine.connect())
            assert [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("synchronous", "journal_mode", "foreign_keys", "busy_timeout")
            ] == [full, "wal", 1, 10_000]


@pytest.mark.sqlite
def test_a_write_holds_the_lock_from_its_beginning(storage: Storage) -> None:
    """Otherwise the state that it reads could change before it writes."""
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


def test_read_transaction_sees_one_moment(storage: Storage) -> None:
    seq = open_round(storage)
    of_round = in_round(submission_keys.c.key, seq)
    count = sa.select(sa.func.count()).select_from(submission_keys).where(of_round)
    with storage.database.read() as connection:
        assert connection.scalar(count) == 0
        commit(storage, seq, Submitted(b"k", (1,)))
        assert connection.scalar(count) == 0
    assert count_rows(storage, submission_keys, of_round) == 1


class Torn(Group):
    """A group whose commit fails midway."""

    def rows(self, positions: Sequence[int]) -> tuple[bytes, Tally]:
        raise ZeroDivisionError


def test_a_write_that_fails_leaves_nothing(storage: Storage) -> None:
    """As many reports as it would have written are stored after it, but others."""
    first, second = open_round(storage), open_round(storage)
    commit(storage, first, Submitted(b"a", (1,)))
    torn = [Submitted(b"b", (2,))]
    with pytest.raises(ZeroDivisionError):
        storage.commit([Group(first, torn), Torn(second, torn)])
    assert [stored(storage, seq) for seq in (first, second)] == [[1], []]
    for name, item in ((b"c", 3), (b"d", 4)):
        commit(storage, first, Submitted(name, (item,)))
    assert storage.rounds.tally([first], 6).summary.tolist() == [0, 1, 0, 1, 1, 0]
    assert commit(storage, second, *torn) == [Outcome.STORED]


def test_group_over_several_rounds_keeps_its_order(storage: Storage) -> None:
    first, second, closed = (open_round(storage) for _ in range(3))
    close_round(storage, closed)
    groups = [
        Group(second, [Submitted(b"a", (1,)), Submitted(b"b", (2,))]),
        Group(closed + 1, [Submitted(b"a", (1,))]),
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


def test_rounds_of_a_group_share_each_statement(open_storage: OpenStorage, fresh: str) -> None:
    """The first group inserts the tallies, the second updates them, the third has stored keys."""
    storage = open_storage(fresh)
    statements: list[str] = []
    event.listen(
        storage.database.engine, "before_cursor_execute", lambda *call: statements.append(call[2])
    )
    numbers = []
    for rounds in (2, 40):
        seqs = [open_round(storage) for _ in range(rounds)]
        for names in (b"a", b"b", b"bc"):
            submissions = [Submitted(bytes([name]), (name % 6,)) for name in names]
            statements.clear()
            outcomes = storage.commit([Group(seq, submissions) for seq in reversed(seqs)])
            first = Outcome.DUPLICATE if len(names) > 1 else Outcome.STORED
            assert outcomes == rounds * [[first, Outcome.STORED][: len(names)]]
            numbers.append(len(statements))
        assert {tuple(stored(storage, seq)) for seq in seqs} == {(1, 2, 3)}
        assert {storage.rounds.tally([seq], 6).n for seq in seqs} == {3}
    assert numbers[:3] == numbers[3:]


@pytest.mark.postgres
def test_groups_over_the_same_rounds_and_keys_do_not_deadlock(
    open_storage: OpenStorage, fresh: str
) -> None:
    """Two processes send the same submissions in opposite orders; each is stored once."""
    storages = [open_storage(fresh) for _ in range(2)]
    storages[1].database.process = 1
    seqs = [open_round(storages[0]) for _ in range(5)]

    def commits(storage: Storage, order: int) -> list[list[Outcome]]:
        return [
            outcome
            for name in b"abcdefghij"
            for outcome in storage.commit(
                [
                    Group(seq, [Submitted(bytes([name, i]), (1,)) for i in b"xyz"[::order]])
                    for seq in seqs[::order]
                ]
            )[::order]
        ]

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(commits, storages, (1, -1))
    for ours, theirs in zip(one, two, strict=True):
        for pair in zip(ours, theirs[::-1], strict=True):
            assert set(pair) == {Outcome.STORED, Outcome.DUPLICATE}
    assert {storages[0].rounds.tally([seq], 6).n for seq in seqs} == {30}


@pytest.mark.postgres
def test_tally_inserted_meanwhile_is_added_to(open_storage: OpenStorage, fresh: str) -> None:
    """A process with the same number counts the first report of one of the group's rounds."""
    one, two = (open_storage(fresh) for _ in range(2))
    seqs = [open_round(one) for _ in range(3)]
    first = Tally(np.array([0, 0, 0, 0, 0, 2]), 2)
    row = {"round": seqs[1], "process": 0, "n": 2, "counts": encode_counts(first)}
    with ThreadPoolExecutor(1) as pool:
        with two.database.write() as connection:
            connection.execute(sa.insert(tallies), row)
            groups = [Group(seq, [Submitted(b"a", (1,))]) for seq in seqs]
            committing = pool.submit(one.commit, groups)
            wait_for_locks(one, committing)
        assert committing.result(30) == 3 * [[Outcome.STORED]]
    summaries = [one.rounds.tally([seq], 6).summary.tolist() for seq in seqs]
    assert summaries == [[0, 1, 0, 0, 0, n] for n in (0, 2, 0)]


def test_largest_group_is_stored_and_found_again(open_storage: OpenStorage, fresh: str) -> None:
    """It has more submissions than a statement has parameters: 65,535 on Postgres, here 999 on
    SQLite.
    """
    storage = open_storage(fresh)
    size = 66_000
    if storage.database.dialect == "sqlite":
        size = 2_000
        limit = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER
        event.listen(storage.database.engine, "connect", lambda c, record: c.setlimit(limit, 999))
        storage.database.engine.dispose()
    seq = open_round(storage)
    submissions = [Submitted(i.to_bytes(16, "little"), (i % 6,)) for i in range(size)]
    assert set(commit(storage, seq, *submissions)) == {Outcome.STORED}
    assert set(commit(storage, seq, *submissions)) == {Outcome.DUPLICATE}
    assert storage.rounds.tally([seq], 6).n == size


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


@settings(max_examples=60)
@given(steps=groups_of_submissions)
def test_any_history_of_a_round_is_that_of_a_dictionary(
    storage: Storage, steps: list[list[Submitted] | str]
) -> None:
    """The first bytes under a key count once, in whatever groups they and others are sent."""
    seq = open_round(storage)
    model: dict[bytes, tuple[int, ...]] = {}
    state = "open"
    for step in steps:
        if isinstance(step, str):
            close_round(storage, seq)
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
        assert commit(storage, seq, *step) == expected
        reports = sorted(item for items in model.values() for item in items)
        assert stored(storage, seq) == reports
        assert storage.rounds.tally([seq], 6) == Tally.of(
            PARAMETERS.oracle, np.array(reports, dtype="<u4")
        )


@pytest.mark.postgres
@pytest.mark.parametrize("conflict", ["key", "tally"])
def test_concurrent_change_rolls_the_statement_back(
    open_storage: OpenStorage, url: str, conflict: str
) -> None:
    """The commit waits for the other process's, which it did not see, and is then repeated."""
    one, two = open_storage(url), open_storage(url)
    seq = open_round(one)
    commit(one, seq, Submitted(b"a", (0,)))
    other = Submitted(b"b", (1,))
    change, outcome, summary = {
        "key": (
            sa.insert(submission_keys).values(other.row(seq)),
            Outcome.DUPLICATE,
            [1, 0, 1, 0, 0, 0],
        ),
        "tally": (
            sa.update(tallies)
            .where(tallies.c.round == seq)
            .values(n=2, counts=encode_counts(Tally(np.array([2, 0, 0, 0, 0, 0]), 2))),
            Outcome.STORED,
            [2, 1, 1, 0, 0, 0],
        ),
    }[conflict]
    with ThreadPoolExecutor(1) as pool:
        with two.database.write() as connection:
            connection.execute(change)
            committing = pool.submit(commit, one, seq, other, Submitted(b"c", (2,)))
            wait_for_locks(one, committing)
        assert committing.result(30) == [outcome, Outcome.STORED]
    assert stored(one, seq) == [0, *([1] if conflict == "tally" else []), 2]
    assert one.rounds.tally([seq], 6).summary.tolist() == summary


def test_counts_take_four_bytes_and_eight_from_2_to_the_32(storage: Storage) -> None:
    """The row is inserted, and then updated by either path, below and above 2³² reports."""

    class Counted(Group):
        tally: Tally

        def rows(self, positions: Sequence[int]) -> tuple[bytes, Tally]:
            return b"", self.tally

    seq = open_round(storage, retention="none")
    query = sa.select(tallies.c.counts).where(tallies.c.round == seq)
    other = Group(open_round(storage), [Submitted(b"other", (0,))])
    counts = []
    for i, n in enumerate((300, 2**31 - 1, 2**31 - 300, 1)):
        tally = Tally(np.array([0, 0, 0, 0, n // 2, n]), n)
        group = Counted(seq, [Submitted(b"%d" % i, (0,))])
        group.tally = tally
        assert storage.commit([group, other] if i == 1 else [group])[0] == [Outcome.STORED]
        with storage.database.read() as connection:
            counts.append(connection.scalars(query).one())
    assert counts[0] == bytes(16) + bytes([150, 0, 0, 0, 44, 1, 0, 0])
    assert [len(row) for row in counts] == [24, 24, 24, 48]
    assert counts[3][-8:] == (2**32).to_bytes(8, "little")
    assert storage.rounds.tally([seq], 6) == Tally(np.array([0, 0, 0, 0, 2**31 - 1, 2**32]), 2**32)


def test_nothing_stored_tells_who_reported_what_or_when(
    open_storage: OpenStorage, fresh: str
) -> None:
    """Key rows have neither time nor place; a segment's time is its hour."""
    moment = datetime(2024, 5, 13, 10, 59, 59, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: moment)
    commit(storage, open_round(storage), Submitted(b"b", (1,)), Submitted(b"a", (2,)))
    columns = {"keys": ["key", "digest"], "segments": ["id", "round", "hour", "n", "data"]}
    with storage.database.read() as connection:
        hour = connection.exec_driver_sql("SELECT hour FROM segments").scalar_one()
        assert hour == datetime(2024, 5, 13, 10, tzinfo=UTC).timestamp() // 3600
        for table, names in columns.items():
            assert [c["name"] for c in sa.inspect(connection).get_columns(table)] == names


@pytest.mark.sqlite
def test_key_rows_have_no_rowid(storage: Storage) -> None:
    with (
        storage.database.read() as connection,
        pytest.raises(sa.exc.OperationalError, match="rowid"),
    ):
        connection.exec_driver_sql("SELECT rowid FROM keys")


def test_rounds_survive_reopening_the_database(open_storage: OpenStorage, fresh: str) -> None:
    parameters = RoundParameters("olh", 0.1 + 0.2, ("Łódź", "\U0001f600", "a  b"), parameter=7)
    before = open_storage(fresh)
    opened = before.rounds.open("R1", "one", parameters)
    before.close()
    storage = open_storage(fresh)
    for identifier in ("one", "R1", "current"):
        assert storage.rounds.find(identifier) == opened
    assert storage.rounds.parameters(opened.seq) == parameters
    with pytest.raises(NameTakenError):
        storage.rounds.open("R2", "one", parameters)


@pytest.mark.parametrize("size", [1, (2 << 20) + 1])
def test_large_value_is_read_in_slices(storage: Storage, size: int) -> None:
    """A connection to Postgres keeps a buffer of twice the largest value that it has read."""
    longest = 125
    items = (*(f"{i:0{longest}}" for i in range(size // (longest + 3))), "a", "b")
    seq = open_round(storage, RoundParameters("grr", 1.0, items))
    sizes: list[int] = []

    def measure(_: object, cursor: Any, *statement: object) -> None:
        rows = getattr(cursor, "pgresult", None)
        if rows is not None and rows.ntuples:
            sizes.extend(len(rows.get_value(0, i) or b"") for i in range(rows.nfields))

    event.listen(storage.database.engine, "after_cursor_execute", measure)
    try:
        assert tuple(decode_labels(storage.rounds.labels(seq))) == items
    finally:
        event.remove(storage.database.engine, "after_cursor_execute", measure)
    assert max(sizes, default=0) <= (1 << 20) * 2 + 2  # two digits for each byte


def test_sequence_numbers_are_never_reused(open_storage: OpenStorage, fresh: str) -> None:
    """Otherwise a submission to a deleted round could be stored in the next one."""
    storage = open_storage(fresh)
    for _ in range(3):
        seq = storage.rounds.open("R1", "one", PARAMETERS).seq
        storage.deletion.delete("R1")
        assert open_round(storage) > seq
        assert commit(storage, seq, Submitted(b"k", (1,))) == [Outcome.GONE]


def test_rejects_database_of_another_schema(open_storage: OpenStorage, fresh: str) -> None:
    storage = open_storage(fresh)
    storage.prepare()
    with storage.database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigurationError, match="schema 9999, of another version"):
        storage.prepare()
    with storage.database.read() as connection:
        version = connection.exec_driver_sql("SELECT version_num FROM alembic_version")
        assert version.scalar_one() == "9999"


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
    # SQLite's transaction locks the whole file, Postgres's what closing a round locks.
    holder = sa.create_engine(fresh, poolclass=sa.NullPool)
    with holder.connect() as other:
        other.exec_driver_sql(HOLD[storage.database.dialect])
        with pytest.raises(StoreUnavailableError):
            commit(storage, seq, Submitted(b"a", (1,)))
        other.rollback()
    assert commit(storage, seq, Submitted(b"a", (1,))) == [Outcome.STORED]

"""A commit in one statement leaves the same rows and outcomes as one in several."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import NewDatabase
from tests.server.storage.conftest import PARAMETERS, Group, Submitted

from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.encoding import in_round
from ldprecover_server.storage.schema import rounds, segments, submission_keys, tallies

RETENTIONS = ("forever", "none")

submissions = st.builds(
    Submitted,
    name=st.integers(0, 99).map(lambda i: b"%d" % i),
    items=st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple),
)
groups = st.lists(submissions, min_size=1, max_size=4)
commits = st.tuples(st.integers(0, 1), st.dictionaries(st.integers(0, 1), groups, min_size=1))
closings = st.tuples(st.just("close"), st.integers(0, 1))


def history_around(round: int) -> st.SearchStrategy[list[object]]:
    usual = st.tuples(st.just(0), st.fixed_dictionaries({round: groups}))
    return st.lists(usual | usual | commits | closings, min_size=3, max_size=14)


histories = st.integers(0, 1).flatmap(history_around)
"""Commits to one or two rounds by two processes, most by one to one; and closings of rounds."""


class Pair:
    """Two processes on a database, which may have the same number."""

    def __init__(self, url: str, *, one_statement: bool) -> None:
        self.storages = [Storage(url), Storage(url)]
        self.storages[0].prepare()
        self.stored = 0
        for storage in self.storages:
            commit = storage.database.commit_in_one_statement

            def count(*values: Any, commit: Any = commit) -> bool:
                is_stored = one_statement and commit(*values)
                self.stored += is_stored
                return is_stored

            storage.database.commit_in_one_statement = count  # type: ignore[assignment, method-assign]

    def close(self) -> None:
        for storage in self.storages:
            storage.close()

    def open_rounds(self, number: int) -> list[int]:
        return [
            self.storages[0]
            .rounds.open(f"R{number}{r}", f"r{number}-{r}", PARAMETERS, retention=r)
            .seq
            for r in RETENTIONS
        ]

    def play(
        self, number: int, seqs: list[int], history: list[Any], *, same_number: bool
    ) -> list[Any]:
        self.storages[1].database.process = 0 if same_number else 1
        outcomes: list[Any] = []
        for process, step in history:
            if process == "close":
                self.storages[0].rounds.close(f"r{number}-{RETENTIONS[step]}")
            else:
                outcomes.append(
                    self.storages[process].commit(
                        [Group(seqs[r], each) for r, each in step.items()]
                    )
                )
        return outcomes

    def content(self, seqs: list[int]) -> list[Any]:
        """Return all rows of these rounds, in order; of a tally's token only its length."""
        columns_of = (
            (submission_keys, [submission_keys.c.key, submission_keys.c.digest]),
            (segments, [segments.c.n, segments.c.data]),
            (
                tallies,
                [tallies.c.process, tallies.c.n, tallies.c.counts, sa.func.length(tallies.c.token)],
            ),
        )
        states = sa.select(rounds.c.state).where(rounds.c.seq.in_(seqs)).order_by(rounds.c.seq)
        with self.storages[0].database.read() as connection:
            content: list[Any] = [connection.scalars(states).all()]
            for seq in seqs:
                for table, columns in columns_of:
                    order = segments.c.id if table is segments else columns[0]
                    of_round = (
                        in_round(order, seq) if table is submission_keys else table.c.round == seq
                    )
                    content.append(
                        connection.execute(
                            sa.select(*columns).where(of_round).order_by(order)
                        ).all()
                    )
        return content


@pytest.fixture(scope="module")
def pairs(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Pair, Pair]]:
    with ExitStack() as stack:

        def pair(*, one_statement: bool) -> Pair:
            url = stack.enter_context(new_database(Path(tmp_path_factory.mktemp("pair"))))
            return stack.enter_context(closing(Pair(url, one_statement=one_statement)))

        usual = pair(one_statement=True)
        yield usual, pair(one_statement=False)
        assert usual.stored, "the one statement must have stored something"


# On a busy machine inputs are generated slowly too.
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories, same_number=st.booleans())
def test_any_history_ends_the_same_either_way(
    pairs: tuple[Pair, Pair], history: list[Any], same_number: bool
) -> None:
    latest = pairs[0].storages[0].rounds.page(1)
    number = latest[0].seq if latest else 0
    ended = []
    for pair in pairs:
        seqs = pair.open_rounds(number)
        ended.append(
            (pair.play(number, seqs, history, same_number=same_number), pair.content(seqs))
        )
    assert ended[0] == ended[1]


def test_groups_of_rounds_written_before_are_one_statement_each(
    pairs: tuple[Pair, Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, names = pairs[0], iter(range(100))

    def commit(*seqs: int) -> int:
        """Commit a new submission to each round; return how many statements stored groups."""
        before = pair.stored
        groups = [Group(seq, [Submitted(b"%d" % next(names), (1, 2))]) for seq in seqs]
        assert pair.storages[0].commit(groups) == [[Outcome.STORED]] * len(seqs)
        return pair.stored - before

    seqs = [*pair.open_rounds(1_000), *pair.open_rounds(1_001)]
    assert commit(*seqs) == 0, "the tallies have no row yet"
    assert [commit(*seqs[::-1]), commit(*seqs)] == [1, 1]
    assert [commit(seq) for seq in seqs] == [1, 1, 1, 1], "each is remembered beside the others"

    monkeypatch.setattr("ldprecover_server.storage.backends.sqlite.SQLITE_ROUNDS", 3)
    is_sqlite = pair.storages[0].database.dialect == "sqlite"
    assert commit(*seqs) == (0 if is_sqlite else 1)
    monkeypatch.setattr("ldprecover_server.storage.commit._TALLIES", 1)
    assert [commit(seqs[0]), commit(seqs[1]), commit(seqs[1])] == [1, 0, 1]
    with pair.storages[0].database.read() as connection:
        n = connection.scalars(sa.select(tallies.c.n).where(tallies.c.round.in_(seqs))).all()
    assert sorted(n) == [10, 10, 12, 14]

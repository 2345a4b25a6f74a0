"""Storages on both databases, and submissions that are committed without HTTP."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from tests.conftest import NewDatabase

from ldprecover import RoundParameters, Tally
from ldprecover_server.storage import Batch, Outcome, Storage
from ldprecover_server.storage.encoding import encode_digest, encode_key
from ldprecover_server.storage.maintenance.chunks import HasTime
from ldprecover_server.storage.schema import rounds, segments

PARAMETERS = RoundParameters("grr", 1.0, tuple(map(str, range(6))))

OpenStorage = Callable[..., Storage]


@pytest.fixture(scope="module")
def url(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database for the module."""
    with new_database(tmp_path_factory.mktemp("storage")) as url:
        yield url


@pytest.fixture
def fresh(new_database: NewDatabase, tmp_path: Path) -> Iterator[str]:
    """A database of the test's own."""
    with new_database(tmp_path) as url:
        yield url


@pytest.fixture(scope="module")
def open_storage() -> Iterator[OpenStorage]:
    """Open storages at URLs; all are closed at the end."""
    with ExitStack() as stack:

        def open_at(url: str, **options: Any) -> Storage:
            storage = stack.enter_context(closing(Storage(url, **options)))
            storage.prepare()
            return storage

        yield open_at


@pytest.fixture(scope="module")
def storage(open_storage: OpenStorage, url: str) -> Storage:
    return open_storage(url)


@dataclass
class Submitted:
    """A GRR submission under a key."""

    name: bytes
    items: tuple[int, ...]

    def __post_init__(self) -> None:
        self.key = self.name.ljust(16, b".")
        self.digest = hashlib.sha256(repr(self.items).encode()).digest()[:16]

    def row(self, seq: int) -> dict[str, bytes]:
        """Return what is stored of it in a round."""
        return {"key": encode_key(seq, self.key), "digest": encode_digest(self.digest)}


class Group(Batch):
    """GRR submissions to one round that are to be committed together."""

    def __init__(self, seq: int, submissions: Sequence[Submitted]) -> None:
        self.seq = seq
        self.hashes = [(each.key, each.digest) for each in submissions]
        self.submissions = submissions

    def rows(self, positions: Sequence[int]) -> tuple[bytes, Tally]:
        items = [item for i in positions for item in self.submissions[i].items]
        reports = np.array(items, dtype="<u4")
        return reports.tobytes(), Tally.of(PARAMETERS.oracle, reports)


def open_round(storage: Storage, parameters: RoundParameters = PARAMETERS, **options: Any) -> int:
    """Open a round under a random name and return its sequence number."""
    name = f"r{np.random.default_rng().integers(1 << 62)}"
    return storage.rounds.open(f"R{name}", name, parameters, **options).seq


def name_of(storage: Storage, seq: int) -> str:
    """Return the name of a round that may be deleted."""
    with storage.database.read() as connection:
        return connection.scalars(sa.select(rounds.c.name).where(rounds.c.seq == seq)).one()


def close_round(storage: Storage, seq: int) -> None:
    storage.rounds.close(name_of(storage, seq))


def commit(storage: Storage, seq: int, *submissions: Submitted) -> list[Outcome]:
    """Commit submissions to one round; return their outcomes."""
    return storage.commit([Group(seq, submissions)])[0]


def packed_reports(storage: Storage, seq: int, table: sa.Table = segments) -> list[bytes]:
    """Return the reports of a round in a table, sorted."""
    reports = []
    with storage.database.read() as connection:
        query = sa.select(table.c.n, table.c.data).where(table.c.round == seq)
        for n, data in connection.execute(query):
            size = len(data) // n
            assert len(data) == n * size
            reports += [data[i : i + size] for i in range(0, len(data), size)]
    return sorted(reports)


def stored(storage: Storage, seq: int) -> list[int]:
    """Return the items of all GRR reports in a round's segments, sorted."""
    return sorted(int.from_bytes(report, "little") for report in packed_reports(storage, seq))


def count_rows(storage: Storage, table: sa.Table, condition: sa.ColumnElement[bool]) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(condition)
    with storage.database.read() as connection:
        return connection.scalars(query).one()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit chunks to eight rows, however long they take."""
    for name, value in (("_LONG_SECONDS", 60.0), ("_FIRST_ROWS", 8), ("_MAX_ROWS", 8)):
        monkeypatch.setattr(f"ldprecover_server.storage.maintenance.chunks.{name}", value)


def for_chunks(number: int) -> HasTime:
    """Return a function that returns True this number of times."""
    remaining = iter(range(number))
    return lambda: next(remaining, None) is not None


def wait_for_locks(storage: Storage, *waiting: Future[Any]) -> None:
    """Wait until this number of sessions wait for a lock, and none of the calls has returned."""
    waits = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
        "wait_event_type = 'Lock'"
    )
    with storage.database.read() as connection:
        while connection.scalar(waits) != len(waiting):
            assert not any(call.done() for call in waiting)
            connection.exec_driver_sql("SELECT pg_stat_clear_snapshot()")

"""Storages on both databases, and submissions that are committed without HTTP."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from tests.conftest import NewDatabase

from ldprecover import RoundParameters, Tally
from ldprecover_server.storage import SealedBatch, Storage
from ldprecover_server.storage.key_encoding import encode_digest, encode_key

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


@dataclass(frozen=True)
class Group:
    """Submissions to one round that are to be committed together."""

    seq: int
    submissions: Sequence[Submitted]

    def seal(self, fresh: Sequence[int]) -> SealedBatch:
        items = [item for i in fresh for item in self.submissions[i].items]
        reports = np.array(items, dtype="<u4")
        return SealedBatch(reports.tobytes(), Tally.of(PARAMETERS.oracle, reports))


def open_round(storage: Storage, parameters: RoundParameters = PARAMETERS) -> int:
    name = f"r{np.random.default_rng().integers(1 << 62)}"
    return storage.rounds.open(f"R{name}", name, parameters).seq


def stored(storage: Storage, seq: int) -> list[int]:
    """Return the items of all reports in a round's segments, sorted."""
    with storage.database.read() as connection:
        rows = connection.execute(
            sa.text("SELECT n, data FROM segments WHERE round = :seq"), {"seq": seq}
        ).all()
    items = []
    for n, data in rows:
        found = np.frombuffer(data, dtype="<u4").tolist()
        assert len(found) == n
        items += found
    return sorted(items)

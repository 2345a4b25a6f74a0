"""Checkpoints of the write-ahead log run beside the commits and bound its size."""

import contextlib
import logging
import sqlite3
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import OpenStorage, Submitted, commit, open_round

from ldprecover_server.storage import Storage
from ldprecover_server.storage.backends import sqlite
from ldprecover_server.storage.backends.sqlite import Checkpoints

pytestmark = pytest.mark.sqlite


@pytest.fixture
def claimed(open_storage: OpenStorage, fresh: str) -> Storage:
    storage = open_storage(fresh)
    storage.database.claim()
    storage.database.engine.dispose()  # connections made from now on are a server's
    return storage


def thread_of(storage: Storage) -> Checkpoints:
    checkpoints = storage.database._checkpoints  # type: ignore[attr-defined]
    assert isinstance(checkpoints, Checkpoints)
    return checkpoints


def log_of(storage: Storage) -> Path:
    return Path(f"{storage.database.name}-wal")


def add(storage: Storage, seq: int, *numbers: int) -> None:
    commit(storage, seq, *(Submitted(b"%d" % i, (i % 6,)) for i in numbers))


def await_checkpoint(storage: Storage, done: int) -> None:
    """Wait until more than this number of checkpoints are done."""
    while thread_of(storage).done <= done:
        assert threads()


def threads() -> int:
    return sum(thread.name == "ldprecover-checkpoints" for thread in threading.enumerate())


def test_the_log_is_written_back_beside_the_commits(
    claimed: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has their pages while every connection of the storage is still open."""
    monkeypatch.setattr(sqlite, "PAGES", 200)
    seq = open_round(claimed)
    file = Path(claimed.database.name)
    before, commits = file.stat().st_size, 0
    while file.stat().st_size == before:
        assert commits < 500
        add(claimed, seq, commits)
        commits += 1
    assert claimed.rounds.tally([seq], 6).n == commits


def test_log_size_is_bounded_under_constant_writes(
    claimed: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PAGES", 20)
    monkeypatch.setattr("ldprecover_server.storage.backends.sqlite.MAX_PAGES", 150)
    seq = open_round(claimed)
    for i in range(600):  # they write at least 1,800 pages
        add(claimed, seq, i)
    assert log_of(claimed).stat().st_size < 3 * 150 * 4120


def test_failed_checkpoint_is_retried(
    claimed: Storage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is missing for a while, and none is created in its place."""
    path = Path(claimed.database.name)
    seq = open_round(claimed)
    add(claimed, seq, 1)
    monkeypatch.setattr(sqlite, "PAGES", 1)
    moved = path.rename(path.with_name("moved.db"))
    with caplog.at_level(logging.WARNING):
        thread_of(claimed).add_pages(1)
        while "checkpoint of the write-ahead log failed" not in caplog.text:
            assert threads()
    assert not path.exists()
    moved.rename(path)
    done = thread_of(claimed).done
    add(claimed, seq, 2)
    await_checkpoint(claimed, done)
    assert claimed.rounds.tally([seq], 6).n == 2


def test_long_reader_keeps_the_log_and_blocks_no_commit(
    claimed: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PAGES", 20)
    seq = open_round(claimed)
    add(claimed, seq, 0)
    count = sa.text("SELECT count(*) FROM keys")
    with claimed.database.read() as connection:
        assert connection.scalar(count) == 1
        done = thread_of(claimed).done
        for i in range(1, 30):
            add(claimed, seq, i)
        await_checkpoint(claimed, done)
        assert connection.scalar(count) == 1
    assert claimed.rounds.tally([seq], 6).n == 30


def test_unexpected_error_is_logged_and_work_is_retried(
    claimed: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    """The file system fails once when the file is checked."""
    faults = [OSError("input/output error")]

    def check() -> None:
        if faults:
            raise faults.pop()

    thread = Checkpoints(Path(claimed.database.name), check)
    try:
        thread.add_pages(sqlite.PAGES)
        while "input/output error" not in caplog.text:
            assert threads()
        assert "Traceback" in caplog.text
        thread.add_pages(sqlite.PAGES)
        while not thread.done:
            assert threads()
    finally:
        thread.close()


def test_replaced_file_is_not_touched(claimed: Storage, caplog: pytest.LogCaptureFixture) -> None:
    path = Path(claimed.database.name)
    moved = path.rename(path.with_name("moved.db"))
    with contextlib.closing(sqlite3.connect(path)) as another:
        another.execute("CREATE TABLE theirs (a)")
    done = thread_of(claimed).done
    thread_of(claimed).add_pages(sqlite.PAGES)
    while (
        "checkpoint of the write-ahead log failed" not in caplog.text
        and thread_of(claimed).done == done
    ):
        assert threads()
    assert thread_of(claimed).done == done
    moved.rename(path)


def test_closing_waits_for_what_was_begun(claimed: Storage) -> None:
    begun, may_continue = threading.Event(), threading.Event()

    def check() -> None:
        begun.set()
        may_continue.wait(60)

    thread = Checkpoints(Path(claimed.database.name), check)
    thread.add_pages(sqlite.PAGES)
    assert begun.wait(60)
    closing = threading.Thread(target=thread.close)
    closing.start()
    try:
        closing.join(0.2)
        assert closing.is_alive()
    finally:
        may_continue.set()
        closing.join()
    assert thread.done == 1

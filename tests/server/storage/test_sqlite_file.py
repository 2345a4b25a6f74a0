"""The file of a SQLite server: its owner, its mode, and what happens if it is removed."""

import errno
import fcntl
import shutil
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import event
from tests.server.conftest import InProcess, StartInProcess, problem_of
from tests.server.storage.conftest import open_round

from ldprecover_server import ConfigurationError, Settings, create_key, serve
from ldprecover_server.errors import DatabaseGoneError, StoreUnavailableError
from ldprecover_server.storage import Storage

pytestmark = pytest.mark.sqlite


def prepare(path: Path) -> None:
    with closing(Storage(f"sqlite:///{path}")) as storage:
        storage.prepare(claim=True)


def file_of(app: InProcess) -> Path:
    return Path(app.storage.database.name)


def test_files_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    with closing(Storage(f"sqlite:///{tmp_path / 'ldprecover.db'}")) as storage:
        storage.database.claim()
        storage.prepare()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert {"ldprecover.db", "ldprecover.db-wal", "ldprecover.db.lock"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_empty_file_becomes_a_database_and_keeps_its_mode(tmp_path: Path) -> None:
    """`mktemp` creates one."""
    path = tmp_path / "ldprecover.db"
    path.touch(mode=0o640)
    path.chmod(0o640)
    with closing(Storage(f"sqlite:///{path}")) as storage:
        storage.database.claim()
        storage.prepare()
        storage.check_writable()
        assert storage.migrate() == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_file_that_takes_no_writes_is_said_to_be_read_only(tmp_path: Path) -> None:
    with closing(Storage(f"sqlite:///{tmp_path / 'ldprecover.db'}")) as storage:
        storage.prepare()
        database = storage.database
        with database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")
            reason = "takes no writes: it or its folder is read-only"
            with pytest.raises(StoreUnavailableError, match=reason), database.translated_errors():
                connection.exec_driver_sql("CREATE TABLE another (id INTEGER)")


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_removed_file_is_noticed_and_not_recreated(
    start_in_process: StartInProcess, replaced: bool
) -> None:
    app = start_in_process()
    id, path = app.open_round(), file_of(app)
    report = {"json": {"reports": [1]}, "headers": {"Idempotency-Key": "k"}}
    assert app.post(f"/rounds/{id}/reports", json={"reports": [2]}).status_code == 202
    moved = path.rename(path.with_name("moved.db"))
    if replaced:
        with closing(Storage(f"sqlite:///{path.with_name('other.db')}")) as other:
            other.prepare()
        path.with_name("other.db").rename(path)
    answers = [
        app.get("/readyz"),
        app.post(f"/rounds/{id}/reports", **report),
        app.get(f"/rounds/{id}/frequencies"),
        app.post(f"/rounds/{id}/close", headers=app.admin),
    ]
    assert {problem_of(a) for a in answers} == {"database-gone"}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers)
    assert app.get("/healthz").status_code == 200
    app.storage.database.engine.dispose()  # the next connection would be to another file
    again = app.post(f"/rounds/{id}/reports", **report)
    assert problem_of(again) == "database-gone"
    assert path.exists() is replaced
    moved.rename(path)
    assert app.get("/readyz").status_code == 200
    assert app.post(f"/rounds/{id}/reports", **report).json()["duplicate"] is False
    assert app.get(f"/rounds/{id}/frequencies").json()["counts"] == [0, 1, 1, 0]


def test_commit_into_a_removed_file_fails(tmp_path: Path) -> None:
    path = tmp_path / "ldprecover.db"
    with closing(Storage(f"sqlite:///{path}")) as storage:
        storage.prepare()
        with pytest.raises(DatabaseGoneError), storage.database.write():
            path.unlink()


def foreign(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.execute("INSERT INTO recipes VALUES ('soup')")
        connection.commit()
    return path.read_bytes()


@pytest.mark.parametrize("run", [serve, create_key], ids=["serve", "key create"])
def test_rejects_database_of_another_program(tmp_path: Path, run: object) -> None:
    path = tmp_path / "recipes.db"
    before = foreign(path)
    assert callable(run)
    with pytest.raises(ConfigurationError, match="another program"):
        run(Settings(database_url=f"sqlite:///{path}", port=0))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["recipes.db"]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"x"])
def test_rejects_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"notes\.txt"):
        serve(Settings(database_url=f"sqlite:///{path}", port=0))
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("options", ["mode=ro", "mode=memory&uri=true", "uri=1&vfs=unix-none"])
def test_options_of_the_url_are_refused(tmp_path: Path, options: str) -> None:
    """Some open another file or none, and the others are ignored."""
    with pytest.raises(ConfigurationError, match="without options"):
        Storage(f"sqlite:///{tmp_path / 'ldprecover.db'}?{options}")
    assert not list(tmp_path.iterdir())


def test_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ldprecover.db"
    path.symlink_to(tmp_path / "nowhere" / "ldprecover.db")
    with pytest.raises(ConfigurationError, match=r"folder of the database .*nowhere"):
        serve(Settings(database_url=f"sqlite:///{path}", port=0))


def test_file_under_a_second_name_is_refused(tmp_path: Path, migrated_file: Path) -> None:
    """Its log lies beside the name by which it was opened, and only there SQLite finds it."""
    path, soft, hard = (tmp_path / name for name in ("served.db", "soft.db", "hard.db"))
    shutil.copy(migrated_file, path)
    soft.symlink_to(path)
    with closing(Storage(f"sqlite:///{path}")) as storage:
        storage.prepare(claim=True)
        with pytest.raises(ConfigurationError, match=r"another server has .*served\.db open"):
            prepare(soft)
        hard.hardlink_to(path)
        with pytest.raises(ConfigurationError, match=r"hard\.db has a second name"):
            prepare(hard)


def test_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.ENOLCK, "No locks available")
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=error))
    with pytest.raises(ConfigurationError, match=r"cannot lock .*a\.db\.lock: No locks"):
        prepare(tmp_path / "a.db")


def test_link_that_changes_its_target_keeps_the_file(tmp_path: Path, migrated_file: Path) -> None:
    link, files = tmp_path / "link.db", [tmp_path / "a.db", tmp_path / "b.db"]
    for file in files:
        shutil.copy(migrated_file, file)
    link.symlink_to(files[0])
    with closing(Storage(f"sqlite:///{link}")) as storage:
        storage.prepare(claim=True)
        before = files[1].read_bytes()
        link.unlink()
        link.symlink_to(files[1])
        storage.database.engine.dispose()
        open_round(storage)
        assert files[1].read_bytes() == before
    assert not files[1].with_name("b.db-wal").exists()


@pytest.mark.parametrize("name", ["a\0b", "a" * 256, "a" * 5000], ids=["NUL", "256", "5000"])
def test_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="the database"):
        prepare(tmp_path / name)


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE verdicts",
        "ALTER TABLE tallies DROP COLUMN token",
        "DROP TABLE labels; CREATE VIEW labels AS SELECT 1 AS round, '' AS items",
    ],
)
def test_schema_that_was_changed_by_hand_is_refused(
    tmp_path: Path, migrated_file: Path, change: str
) -> None:
    path = tmp_path / "changed.db"
    shutil.copy(migrated_file, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(change)
    with pytest.raises(
        ConfigurationError, match=r"cannot serve as database: .*(table|column|view)"
    ):
        prepare(path)


def test_file_system_without_a_log_is_refused(tmp_path: Path) -> None:
    """A later connection too: SQLite would use another journal without a word."""
    path = tmp_path / "ldprecover.db"

    def connect(*arguments: object) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{path}?vfs=unix-none", uri=True)

    with closing(Storage(f"sqlite:///{path}")) as storage:
        event.listen(storage.database.engine, "do_connect", connect)
        with pytest.raises(ConfigurationError, match="journal_mode is delete, not wal"):
            storage.prepare()
        with pytest.raises(StoreUnavailableError):
            storage.check_writable()


def test_lock_file_admits_one_server_and_is_removed(tmp_path: Path) -> None:
    """Many start and stop together, and never do two hold it, though each removes its file."""
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    inside, highest, turns = 0, 0, 0
    counting = threading.Lock()

    def take_turns() -> None:
        nonlocal inside, highest, turns
        while turns < 100:
            with closing(Storage(url)) as storage:
                try:
                    storage.database.claim()
                except ConfigurationError:
                    continue
                with counting:
                    inside, turns = inside + 1, turns + 1
                    highest = max(highest, inside)
                with counting:
                    inside -= 1

    with ThreadPoolExecutor(4) as pool:
        for turn in [pool.submit(take_turns) for _ in range(4)]:
            turn.result()
    assert turns >= 100
    assert highest == 1
    assert list(tmp_path.iterdir()) == []

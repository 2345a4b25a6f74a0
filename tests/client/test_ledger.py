import contextlib
import math
import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover_client import ArgumentError, EpsilonSpentError, Ledger, LedgerError

NEVER = 1.0e9


def claim(
    ledger: Ledger,
    round_id="r1",
    epsilon: float = 0.5,
    packed=b"\x01\x02",
    digest="d",
    url: str = "http://a.test",
):
    return ledger.claim(
        server_url=url, round_id=round_id, digest=digest, epsilon=epsilon, perturb=lambda: packed
    )


def execute(path: Path, script: str) -> None:
    """Run SQL on a file, as another program does."""
    path.parent.mkdir(exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(script)


def run_together(n: int, act: Callable[[int], object]) -> None:
    """Call `act` with 0 to n - 1 in threads that begin together."""
    barrier = threading.Barrier(n)

    def run(i: int) -> None:
        barrier.wait()
        act(i)

    with ThreadPoolExecutor(n) as pool:
        list(pool.map(run, range(n)))


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., object]], None]:
    """Have a function called with each new connection and statement, after it is executed."""
    connect = sqlite3.connect

    def install(on_execute: Callable[..., object]) -> None:
        class Watched(sqlite3.Connection):
            def execute(self, sql, *args):
                result = super().execute(sql, *args)
                on_execute(super(), sql)
                return result

        monkeypatch.setattr(
            sqlite3, "connect", lambda *args, **options: connect(*args, factory=Watched, **options)
        )

    return install


@pytest.fixture
def path(tmp_path: Path):
    return tmp_path / "state" / "ledger.sqlite3"


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, path: Path):
    return Ledger(path) if request.param == "file" else Ledger.in_memory()


def test_first_claim_is_pending(ledger: Ledger):
    entry, new = claim(ledger)
    assert new
    assert (entry.round_id, entry.server_url, entry.epsilon, entry.packed) == (
        "r1",
        "http://a.test",
        0.5,
        b"\x01\x02",
    )
    assert entry.state == "pending"
    assert ledger.entries() == ledger.pending() == (entry,)


def test_key_is_128_random_bits(ledger: Ledger):
    keys = [claim(ledger, f"r{i}", 0.01)[0].key for i in range(20)]
    assert len(set(keys)) == 20
    assert all(len(key) == 32 and int(key, 16) >= 0 for key in keys)


def test_failed_perturbing_leaves_no_entry(ledger: Ledger):
    def perturb() -> NoReturn:
        raise RuntimeError("no randomness")

    with pytest.raises(RuntimeError):
        ledger.claim(server_url="u", round_id="r1", digest="d", epsilon=0.5, perturb=perturb)
    assert ledger.entries() == ()
    assert claim(ledger)[1]


def test_entry_settles_once(ledger: Ledger):
    key = claim(ledger)[0].key
    ledger.change(key, state="refused", reason="the round is closed")
    ledger.change(key, state="accepted")
    (entry,) = ledger.entries()
    assert (entry.state, entry.reason) == ("refused", "the round is closed")
    assert ledger.pending() == ()
    assert ledger.spent == 0.5


def test_total_epsilon_is_limited(path: Path):
    ledger = Ledger(path, max_total_epsilon=1.2)
    claim(ledger, "r1", 0.5)
    claim(ledger, "r2", 0.5)
    with pytest.raises(EpsilonSpentError, match=r"from 1 to 1\.3, above its limit of 1\.2"):
        claim(ledger, "r3", 0.3)
    assert ledger.spent == 1.0
    claim(ledger, "r3", 0.2)
    assert ledger.spent == 1.2
    assert not claim(ledger, "r3", 0.2)[1], "a round that is paid for stays open to its report"


@given(st.integers(1, 60), st.sampled_from([0.01, 0.1, 0.3, 0.7, 1.1]))
def test_total_may_equal_limit(count, epsilon: float):
    """Sums are decimal: 0.1 forty times is exactly 4."""
    limit = float(f"{count * epsilon:.10g}")
    ledger = Ledger.in_memory(max_total_epsilon=limit)
    for i in range(count):
        claim(ledger, f"r{i}", epsilon)
    assert ledger.spent == limit
    with pytest.raises(EpsilonSpentError):
        claim(ledger, "one more", epsilon)


def test_infinity_lifts_the_limit():
    ledger = Ledger.in_memory(max_total_epsilon=math.inf)
    for i in range(100):
        claim(ledger, f"r{i}", 10.0)
    assert ledger.spent == 1000


@pytest.mark.parametrize("limit", [0, -1, math.nan])
def test_rejects_invalid_limit(limit):
    with pytest.raises(ArgumentError, match="max_total_epsilon"):
        Ledger.in_memory(max_total_epsilon=limit)


def test_ledger_survives_restart(path: Path):
    entry, _ = claim(Ledger(path))
    reopened = Ledger(path)
    assert reopened.pending() == (entry,)
    assert claim(reopened, packed=b"other") == (entry, False)


def test_new_ledger_is_private(path: Path, monkeypatch):
    monkeypatch.setattr(Path, "chmod", None)
    Ledger(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_sqlite_journal_is_private(path: Path, watch):
    """The journal contains the same pages during a claim."""
    modes: list[int] = []
    ledger = Ledger(path)
    claim(ledger)

    def perturb() -> bytes:
        with (
            contextlib.closing(sqlite3.connect(path, timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
        return b"\x01"

    def look(db, sql: str) -> None:
        if sql.startswith("INSERT"):
            modes.extend(stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir())

    watch(look)
    ledger.claim(server_url="u", round_id="r2", digest="d", epsilon=0.5, perturb=perturb)
    assert modes == [0o600, 0o600]


def test_shared_ledger_becomes_private(path: Path):
    Ledger(path)
    path.chmod(0o644)
    Ledger(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_default_path_is_state_directory(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    ledger = Ledger()
    assert ledger.path is not None
    assert ledger.path.is_relative_to(tmp_path)
    assert ledger.path.name == "ledger.sqlite3"
    assert ledger.max_total_epsilon == 4.0
    assert claim(Ledger(), packed=b"x")[1]
    assert len(ledger.entries()) == 1


def test_path_may_contain_uri_characters(tmp_path: Path):
    path = tmp_path / "a?mode=memory#50%25 of" / "l'edger.db"
    claim(Ledger(str(path)))
    assert path.stat().st_size > 0
    assert len(Ledger(path).pending()) == 1


def test_claim_is_synced_to_disk(path: Path, watch):
    """SQLite's EXTRA (3) syncs the file, and its directory after the journal is removed."""
    levels: list[object] = []

    def look(db, sql: str) -> None:
        if sql.startswith("INSERT"):
            for name in ("synchronous", "journal_mode"):
                levels.append(db.execute(f"PRAGMA {name}").fetchone()[0])

    ledger = Ledger(path)
    watch(look)
    claim(ledger)
    assert levels == [3, "delete"]


def test_racing_threads_perturb_once(ledger: Ledger):
    perturbed: list[int] = []
    claims: list[Any] = []

    def act(i: int) -> None:
        def perturb() -> bytes:
            perturbed.append(i)
            return bytes([i])

        claims.append(
            ledger.claim(server_url="u", round_id="r1", digest="d", epsilon=0.5, perturb=perturb)
        )

    run_together(8, act)
    assert len(perturbed) == 1
    assert {entry.packed for entry, _ in claims} == {bytes(perturbed)}
    assert [new for _, new in claims].count(True) == 1


def test_racing_threads_cannot_exceed_total(path: Path):
    ledger = Ledger(path, max_total_epsilon=1.0)
    refused: list[int] = []

    def act(i: int) -> None:
        try:
            claim(ledger, f"r{i}", 0.5)
        except EpsilonSpentError:
            refused.append(i)

    run_together(6, act)
    assert len(refused) == 4
    assert ledger.spent == 1.0


def damaged(path: Path) -> None:
    for i in range(30):
        claim(Ledger(path, max_total_epsilon=NEVER), f"r{i}", packed=bytes(4096))
    data = bytearray(path.read_bytes())
    data[4096 : 3 * 4096] = b"\xa5" * (2 * 4096)
    path.write_bytes(data)


def text(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("Dear diary, today I reported my city. " * 50)


def truncated(path: Path) -> None:
    claim(Ledger(path), packed=bytes(50_000))
    path.write_bytes(path.read_bytes()[:9000])


def another_database(path: Path) -> None:
    execute(path, "CREATE TABLE bookmarks (url TEXT)")


def newer(path: Path) -> None:
    Ledger(path)
    execute(path, "PRAGMA user_version = 99")


def a_directory(path: Path) -> None:
    path.mkdir(parents=True)


def readable_by_all(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("notes of mine")
    path.chmod(0o644)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damaged, "malformed|damaged"),
        (text, "is not a ledger"),
        (truncated, "malformed|damaged"),
        (another_database, "is not a ledger"),
        (newer, "has form 99"),
        (a_directory, "not a regular file"),
        (readable_by_all, "is not a ledger"),
    ],
)
def test_invalid_ledger_is_rejected_unchanged(path: Path, spoil, words: str):
    spoil(path)
    before = (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
    with pytest.raises(LedgerError, match=words) as caught:
        Ledger(path)
    assert str(path) in str(caught.value)
    assert (path.stat().st_mode, path.read_bytes() if path.is_file() else None) == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_rejects_special_file_unchanged(tmp_path: Path):
    """Root could otherwise make /dev/null private."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o644)
    with pytest.raises(LedgerError, match="not a regular file"):
        Ledger(pipe)
    assert stat.S_IMODE(pipe.stat().st_mode) == 0o644


def test_interrupted_creation_is_repeated(path: Path):
    """A crash in the first commit: the first page is torn, and the journal says it was empty."""
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\0" * 4096)
    journal = path.with_name(path.name + "-journal")
    # A hot journal of no page: the header's magic, no records, a nonce, 0 pages before, sectors of
    # 512, pages of 4096.
    head = bytes.fromhex("d9d505f920a163d7") + b"".join(
        n.to_bytes(4, "big") for n in (0, 7, 0, 512, 4096)
    )
    journal.write_bytes(head.ljust(512, b"\0"))
    assert Ledger(path).entries() == ()
    assert not journal.exists()


def test_deleted_ledger_is_not_recreated(path: Path):
    """An empty ledger would allow a second report."""
    ledger = Ledger(path)
    claim(ledger)
    path.unlink()
    with pytest.raises(LedgerError, match="unable to open"):
        claim(ledger)
    assert not path.exists()


def test_rejects_emptied_ledger(path: Path):
    ledger = Ledger(path)
    claim(ledger)
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="not a ledger"):
        claim(ledger)


def test_locked_ledger_is_ledger_error(path: Path, monkeypatch):
    monkeypatch.setattr(Ledger, "_lock_timeout", 0.0)
    ledger = Ledger(path)
    with sqlite3.connect(path) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="locked"):
            claim(ledger)
    holder.close()
    assert claim(ledger)[1]


def test_repr_hides_key_and_report(ledger: Ledger):
    entry, _ = claim(ledger)
    assert entry.key not in repr(entry)
    assert "packed" not in repr(entry)


def test_ticket_changes_only_without_open_try(ledger: Ledger):
    claim(ledger)
    first = ledger.begin_try("r1", "a")
    assert (first.ticket, first.open_tries) == ("a", 1)
    assert ledger.begin_try("r1", "b").ticket == "a"
    ledger.end_try("r1")
    assert ledger.begin_try("r1", "b").ticket == "a", "one of the two is open still"
    ledger.end_try("r1")
    ledger.end_try("r1")
    assert ledger.begin_try("r1", "b").ticket == "b"
    ledger.change(first.key, state="accepted")
    assert ledger.begin_try("r1", "c").ticket == "b"
    ledger.end_try("r1")
    assert ledger.entries()[0].state == "accepted"

"""The ledger: an SQLite file with a user's reports and the epsilon that they cost.

It has one row a round, with the round's id (or name, for reports by name), the report's packed
bytes, its idempotency key, and its state. The row is on disk before the report is sent:

    pending ──► accepted    the server has the report
       └──────► refused     the server will never take it (closed, deleted, malformed)

A row is never removed, so its epsilon stays spent: the bytes may have left this machine. The row
does not contain the user's value. A second table has the round that was drawn for each form, a
third when a program answers each series (`usage`), and the key of its unsent report.

A ticket replaces the key, so the same bytes under two tickets could count twice. A try under a
ticket is recorded as open before it is sent. It is no longer open when the server certainly did not
take it: the server refused the ticket, or was never reached. The report may be sent under another
ticket only while no try is open. A try that a crash interrupts stays open.
"""

from __future__ import annotations

import math
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Self
from weakref import finalize

from ldprecover._checks import real
from ldprecover_client.errors import (
    AlreadyReportedError,
    ArgumentError,
    EpsilonSpentError,
    InconsistentRoundError,
    LedgerError,
)

MAX_TOTAL_EPSILON = 4.0
"""Default limit of epsilon over all rounds of one ledger: eight rounds at the paper's 0.5.

If a user reports one value in all rounds, they compose to e^4 = 55: an observer with even odds
becomes at most 98 % sure of it. A larger total protects little.
"""

_IN_MEMORY = ":memory:"
_APPLICATION_ID = 0x4C445052  # "LDPR": marks an SQLite file as a ledger
_SCHEMA_VERSION = 5
_SCHEMA = """
CREATE TABLE reports (
    round_id   TEXT PRIMARY KEY NOT NULL,
    server_url TEXT NOT NULL,
    digest     TEXT NOT NULL,
    epsilon    REAL NOT NULL CHECK (typeof(epsilon) = 'real' AND epsilon > 0),
    key        TEXT NOT NULL UNIQUE,
    packed     BLOB NOT NULL CHECK (typeof(packed) = 'blob'),
    state      TEXT NOT NULL CHECK (state IN ('pending', 'accepted', 'refused')),
    reason     TEXT,
    ticket     TEXT,
    open_tries INTEGER NOT NULL DEFAULT 0 CHECK (open_tries >= 0),
    round_name TEXT,
    question   TEXT,
    form_id    TEXT UNIQUE
);
CREATE TABLE draws (
    form_id    TEXT PRIMARY KEY NOT NULL,
    round_id   TEXT NOT NULL
);
"""
_SCHEDULES = """
CREATE TABLE IF NOT EXISTS schedules (
    series     TEXT PRIMARY KEY NOT NULL,
    due        REAL NOT NULL,
    next_try   REAL NOT NULL,
    key        TEXT,
    note       TEXT NOT NULL
)
"""

# Closing a descriptor of a file drops the locks that other threads of the process hold on it. So no
# ledger is opened here but to create it, which ends before another thread connects.
_CREATING = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One report in the ledger: its round and server, its bytes, and its state.

    It is sent under its `ticket` if it has one, else under its `key`. `open_tries` counts the tries
    under the ticket that the server may have taken.
    """

    round_id: str
    server_url: str
    digest: str
    epsilon: float
    key: str = field(repr=False)
    packed: bytes = field(repr=False)
    state: str = "pending"
    reason: str | None = None
    ticket: str | None = field(default=None, repr=False)
    open_tries: int = 0
    round_name: str | None = None
    question: str | None = None
    form_id: str | None = None


@dataclass(kw_only=True)
class Schedule:
    """When a program answers a series: its own due time, and the time of the next try.

    Both are Unix times in seconds; a series that is switched off is tried never, at infinity. `key`
    is that of the report that is not sent yet, `note` the last outcome.
    """

    series: str
    due: float
    next_try: float
    key: str | None = None
    note: str = "none"

    @property
    def is_off(self) -> bool:
        """Whether the series is switched off."""
        return self.next_try == math.inf


_NAMES = [column.name for column in fields(Entry)]
_COLUMNS = ", ".join(_NAMES)
_VALUES = ", ".join(f":{name}" for name in _NAMES)
_INSERT = f"INSERT INTO reports ({_COLUMNS}) VALUES ({_VALUES})"  # noqa: S608


def default_path() -> Path:
    """Return the default path of a ledger, in the user's state directory."""
    from platformdirs import user_state_path

    return user_state_path("ldprecover", appauthor=False) / "ledger.sqlite3"


class Ledger:
    """A user's ledger, an SQLite file that only the user can read (default: `default_path()`).

    Processes and threads may share it: for each round one of them perturbs, and the others get its
    report. Changes are on disk when a call returns. `max_total_epsilon` limits the sum of epsilon
    over all rounds; infinity lifts the limit. Do not delete the file: that forgets the epsilon
    spent. Raises LedgerError for a file that cannot be opened, is damaged, is not a ledger, or has
    a newer version, and ArgumentError for a limit that is not above zero.

        Reporter(url, ledger=Ledger("ledger.sqlite3", max_total_epsilon=2.0))
    """

    _lock_timeout = 30.0  # seconds

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_total_epsilon: float = MAX_TOTAL_EPSILON,
    ) -> None:
        if not (real(max_total_epsilon) or 0) > 0:
            raise ArgumentError("max_total_epsilon must be a number above 0")
        self.max_total_epsilon = float(max_total_epsilon)
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._memory: sqlite3.Connection | None = None
        self.path: Path | None = None
        with self._translated_errors():
            if path == _IN_MEMORY:
                self._memory = sqlite3.connect(
                    _IN_MEMORY, isolation_level=None, check_same_thread=False
                )
                finalize(self, self._memory.close)
            else:
                self.path = Path(path) if path is not None else default_path()
                _create_private(self.path)
            with self._open() as db, _immediate(db):
                self._create_or_check(db)
            if self.path is not None and self.path.stat().st_mode & 0o077:
                self.path.chmod(0o600)

    @classmethod
    def in_memory(cls, *, max_total_epsilon: float = MAX_TOTAL_EPSILON) -> Self:
        """Return a ledger in memory, for tests and demonstrations only.

        A report without an answer is lost with the process, and the next process may report a real
        value again.
        """
        return cls(_IN_MEMORY, max_total_epsilon=max_total_epsilon)

    def claim(
        self,
        *,
        server_url: str,
        round_id: str,
        digest: str,
        epsilon: float,
        perturb: Callable[[], bytes],
        ticket: str | None = None,
        round_name: str | None = None,
        question: str | None = None,
        form_id: str | None = None,
    ) -> tuple[Entry, bool]:
        """Return the round's entry, and whether it is new.

        Only without an entry is `perturb` called, under the lock, and its packed report written
        with a new random key and the ticket. Raises EpsilonSpentError if the total would exceed
        its limit, InconsistentRoundError if the round had other parameters before, and
        AlreadyReportedError if another round of its form has an entry.
        """
        with self._transaction() as db:
            where = "WHERE round_id = ? OR form_id = ?"
            for entry in _select(db, where, (round_id, form_id)):
                if entry.round_id != round_id:
                    raise AlreadyReportedError(
                        "the ledger has a report to another question of this form"
                    )
                if entry.digest != digest:
                    raise InconsistentRoundError(
                        "the round had other parameters when it was first reported to"
                    )
                return entry, False
            self.check_total(epsilon)
            entry = Entry(
                round_id=round_id,
                server_url=server_url,
                digest=digest,
                epsilon=epsilon,
                # 128 random bits: nobody can guess another user's key and send a report under it.
                key=secrets.token_hex(16),
                packed=perturb(),
                ticket=ticket,
                round_name=round_name,
                question=question,
                form_id=form_id,
            )
            db.execute(_INSERT, vars(entry))
            return entry, True

    def draw(self, form_id: str, round_id: str) -> str:
        """Return the round that was drawn for a form first: this one, if none was before."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO draws VALUES (?, ?)", (form_id, round_id))
            where = "SELECT round_id FROM draws WHERE form_id = ?"
            return str(db.execute(where, (form_id,)).fetchone()[0])

    def check_total(self, epsilon: float) -> None:
        """Raise EpsilonSpentError if a report of this epsilon would exceed the limit."""
        with self._connection() as db:
            spent = _spent(db)
        total = spent + _decimal(epsilon)
        if total > _decimal(self.max_total_epsilon):
            raise EpsilonSpentError(
                f"epsilon {epsilon:g} would take the total of this ledger from {float(spent):g} "
                f"to {float(total):g}, above its limit of {self.max_total_epsilon:g}"
            )

    @contextmanager
    def schedule(self, new: Schedule) -> Iterator[Schedule]:
        """Yield the schedule of a series, `new` if it has none, and store it.

        The block and the methods that it calls are one transaction.
        """
        with self._transaction() as db:
            where = "SELECT * FROM schedules WHERE series = ?"
            row = db.execute(where, (new.series,)).fetchone()
            schedule = new if row is None else Schedule(**dict(zip(vars(new), row, strict=True)))
            yield schedule
            if (values := (*vars(schedule).values(),)) != row:
                db.execute("REPLACE INTO schedules VALUES (?, ?, ?, ?, ?)", values)

    def entry(self, key: str) -> Entry:
        """Return the report under a key."""
        with self._connection() as db:
            return _select(db, "WHERE key = ?", (key,))[0]

    def change(self, key: str, **values: object) -> Entry:
        """Set columns of the report under a key if it is pending; return it.

        The states "accepted" and "refused" are final.
        """
        names = ", ".join(f"{name} = :{name}" for name in values)
        update = f"UPDATE reports SET {names} WHERE key = :key AND state = 'pending'"  # noqa: S608
        with self._transaction() as db:
            db.execute(update, {"key": key, **values})
            return self.entry(key)

    def begin_try(self, round_id: str, ticket: str) -> Entry:
        """Record an open try under a ticket; return the entry as it must be sent.

        The report changes to the new ticket if no try is open, and else keeps its ticket.
        """
        with self._transaction() as db:
            db.execute(
                """
                UPDATE reports SET open_tries = open_tries + 1,
                    ticket = CASE WHEN open_tries = 0 THEN ? ELSE ticket END
                WHERE round_id = ? AND state = 'pending'
                """,
                (ticket, round_id),
            )
            return _select(db, "WHERE round_id = ?", (round_id,))[0]

    def end_try(self, round_id: str) -> None:
        """Record that the server certainly did not take a try under a ticket."""
        with self._transaction() as db:
            db.execute(
                "UPDATE reports SET open_tries = open_tries - 1 WHERE round_id = ? AND state = "
                "'pending'",
                (round_id,),
            )

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first."""
        with self._connection() as db:
            return _select(db)

    def pending(self) -> tuple[Entry, ...]:
        """Return the entries without a final answer that no schedule sends, oldest first."""
        scheduled = "SELECT key FROM schedules WHERE key IS NOT NULL"
        with self._connection() as db:
            return _select(db, f"WHERE state = 'pending' AND key NOT IN ({scheduled})")

    @property
    def spent(self) -> float:
        """Sum of epsilon over all rounds in the ledger."""
        with self._connection() as db:
            return float(_spent(db))

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Connect to a ledger. Raises LedgerError, also for errors of SQLite in the block."""
        with self._translated_errors(), self._open() as db:
            self._check(db)
            yield db

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._translated_errors(), self._open() as db, _immediate(db):
            self._check(db)
            yield db

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if self._memory is not None:
            with self._lock:
                yield self._memory
            return
        if (outer := getattr(self._thread, "db", None)) is not None:
            yield outer
            return
        assert self.path is not None
        # mode=rw: a deleted ledger must not come back empty, with nothing spent.
        uri = f"{self.path.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(uri, uri=True, timeout=self._lock_timeout, isolation_level=None)
        ) as db:
            # FULL syncs the file. EXTRA also syncs the directory after the journal is unlinked:
            # a power cut could otherwise restore the journal, which would undo the commit.
            db.execute("PRAGMA synchronous = EXTRA")
            self._thread.db = db
            try:
                yield db
            finally:
                self._thread.db = None

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
                raise LedgerError(f"{self.path} is not a ledger") from error
            reason = error.strerror if isinstance(error, OSError) else error
            raise LedgerError(
                f"the ledger {self.path or 'in memory'} cannot be used: {reason}"
            ) from error

    def _create_or_check(self, db: sqlite3.Connection) -> None:
        if not any(
            _pragma(db, name) for name in ("application_id", "user_version", "schema_version")
        ):
            for statement in _SCHEMA.split(";"):  # `executescript` would commit
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        self._check(db)
        if (fault := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise LedgerError(f"the ledger {self.path} is damaged: {fault}")
        db.execute(_SCHEDULES)

    def _check(self, db: sqlite3.Connection) -> None:
        if _pragma(db, "application_id") != _APPLICATION_ID:
            raise LedgerError(f"{self.path} is not a ledger")
        if (version := _pragma(db, "user_version")) != _SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger {self.path} has form {version}, and this version reads only "
                f"{_SCHEMA_VERSION}: use the version that made it"
            )


@contextmanager
def _immediate(db: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block writes, or roll it back; the outermost block does."""
    is_inner = db.in_transaction
    if is_inner:
        yield
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _create_private(path: Path) -> None:
    """Create the file and its folder if they do not exist, readable by their owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _CREATING, suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    if not path.is_file():
        raise LedgerError(f"{path} is not a regular file")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _select(
    db: sqlite3.Connection, where: str = "", parameters: tuple[str | None, ...] = ()
) -> tuple[Entry, ...]:
    query = f"SELECT {_COLUMNS} FROM reports {where} ORDER BY rowid"  # noqa: S608
    rows = db.execute(query, parameters)
    return tuple(Entry(**dict(zip(_NAMES, row, strict=True))) for row in rows)


def _spent(db: sqlite3.Connection) -> Decimal:
    return sum(
        (_decimal(epsilon) for (epsilon,) in db.execute("SELECT epsilon FROM reports")), Decimal(0)
    )


def _decimal(epsilon: float) -> Decimal:
    """Return epsilon in decimal, so that forty times 0.1 is exactly 4."""
    return Decimal(repr(epsilon))

"""The base class of the storage's parts: the database and the clock."""

from collections.abc import Callable
from datetime import datetime

from ldprecover_server.storage.database import Database

Clock = Callable[[], datetime]


class Repository:
    """A part of the storage over one database. Methods are safe to call from several threads."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.clock = clock

    def hour(self) -> int:
        """Return the current hour since the epoch."""
        return int(self.clock().timestamp()) // 3600

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")

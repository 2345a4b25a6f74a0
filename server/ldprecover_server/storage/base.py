"""What the rooms of the store share: the database, and the time."""

from collections.abc import Callable
from datetime import datetime

from ldprecover_server.storage.database import Database

Clock = Callable[[], datetime]


class Room:
    """A part of the store over its database. Methods are safe to call from several threads."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.clock = clock

    def hour(self) -> int:
        """Return the hour it is, since the epoch."""
        return int(self.clock().timestamp()) // 3600

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")

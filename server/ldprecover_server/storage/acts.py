"""Acts: who opened, closed or deleted what, and made which keys and tickets."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from ldprecover_server.storage.database import Repository
from ldprecover_server.storage.schema import acts

MAX_ACTS = 10_000
"""The number of acts that are kept."""
MAX_AGE = timedelta(days=365)
"""How long an act is kept."""


@dataclass(frozen=True)
class Act:
    """A change by the holder of an admin key; `key` is its name, or None for a command.

    `subject` is the name of the round, form or key.
    """

    at: str
    key: str | None
    act: str
    subject: str


class ActStore(Repository):
    """The acts of a database."""

    def add(self, connection: sa.Connection, key: str | None, act: str, subject: str) -> None:
        """Write an act in the transaction of its change."""
        row = {"at": self._now(), "key": key, "act": act, "subject": subject}
        connection.execute(sa.insert(acts), row)

    def write(self, key: str | None, act: str, subject: str) -> None:
        """Write an act that changes nothing else in the database."""
        with self.database.write() as connection:
            self.add(connection, key, act, subject)

    def all(self) -> Sequence[Act]:
        """Return the acts that are kept, the last one first."""
        columns = (acts.c.at, acts.c.key, acts.c.act, acts.c.subject)
        query = sa.select(*columns).where(acts.c.at >= self._oldest())
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(acts.c.id.desc()).limit(MAX_ACTS))
            return [Act(*row) for row in rows]

    def delete_old(self) -> None:
        """Delete the acts that are too old or too many."""
        ids = sa.select(acts.c.id).order_by(acts.c.id.desc())
        queries = (ids.offset(MAX_ACTS), ids.where(acts.c.at < self._oldest()))
        with self.database.read() as connection:
            last = max(connection.scalar(query.limit(1)) or 0 for query in queries)
        if last:  # else no write, which would wait for the disk
            with self.database.write() as connection:
                connection.execute(sa.delete(acts).where(acts.c.id <= last))

    def _oldest(self) -> str:
        return (self.clock() - MAX_AGE).isoformat(timespec="seconds")

"""Where the reports of rounds with a retention were exported, so that retention reaches them too.

A row outlives its round, because the files do.
"""

from dataclasses import dataclass

import sqlalchemy as sa

from ldprecover_server.storage.base import Repository
from ldprecover_server.storage.schema import datasets


@dataclass(frozen=True)
class StoredDataset:
    """A dataset of the round with the id `round`: its URL, and its folder while it is written.

    It has reports of the hours `first` to `last`, which are kept for `retention` hours.
    """

    id: int
    round: str
    url: str
    work: str
    retention: int
    first: int
    last: int

    def first_stored_hour(self, now: int) -> int:
        """Return the first hour whose reports are kept at the hour `now`."""
        return now - self.retention


class Datasets(Repository):
    """The datasets of rounds with a retention."""

    def record(
        self, round: str, url: str, work: str, *, retention: int, first: int, last: int
    ) -> None:
        """Record a dataset before it is written; an earlier record of the URL is replaced."""
        row = StoredDataset(0, round, url, work, retention, first, last)
        values = {name: value for name, value in vars(row).items() if name != "id"}
        with self.database.write() as connection:
            connection.execute(sa.delete(datasets).where(datasets.c.url == url))
            connection.execute(sa.insert(datasets), values)

    def forget(self, url: str) -> None:
        """Delete the record of a dataset of which nothing is left."""
        with self.database.write() as connection:
            connection.execute(sa.delete(datasets).where(datasets.c.url == url))

    def expired(self) -> list[StoredDataset]:
        """Return the datasets that have reports past their retention."""
        has_expired = datasets.c.first < self.hour() - datasets.c.retention
        with self.database.read() as connection:
            rows = connection.execute(sa.select(datasets).where(has_expired).order_by("id"))
            return [StoredDataset(**row._mapping) for row in rows]

    def shorten(self, id: int, first: int | None) -> None:
        """Record the first hour left in a dataset; None deletes the record."""
        this = datasets.c.id == id
        with self.database.write() as connection:
            if first is None:
                connection.execute(sa.delete(datasets).where(this))
            else:
                connection.execute(sa.update(datasets).where(this).values(first=first))

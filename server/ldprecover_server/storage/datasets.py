"""Where the reports of rounds were written as datasets: retention lets those go too.

A row outlives its round: the copies do.
"""

from dataclasses import dataclass

import sqlalchemy as sa

from ldprecover_server.storage.base import Room
from ldprecover_server.storage.schema import datasets


@dataclass(frozen=True)
class StoredDataset:
    """A dataset of a round, by the round's id: where it is, and where it is on its way while it is
    written.

    It has reports of the hours from `first` to `last`, which are kept for `retention` hours.
    """

    id: int
    round: str
    url: str
    work: str
    retention: int
    first: int
    last: int

    def before(self, now: int) -> int:
        """Return the first hour whose reports are kept in this one."""
        return now - self.retention


class Datasets(Room):
    """The datasets that a database knows of: those of rounds whose retention ends."""

    def record_dataset(
        self, round: str, url: str, work: str, *, retention: int, first: int, last: int
    ) -> None:
        """Note that a dataset is written, before it is. What was noted of another at its place is
        forgotten.
        """
        row = {
            "round": round,
            "url": url,
            "work": work,
            "retention": retention,
            "first": first,
            "last": last,
        }
        with self.database.write() as connection:
            connection.execute(sa.delete(datasets).where(datasets.c.url == url))
            connection.execute(sa.insert(datasets), row)

    def forget_dataset(self, url: str) -> None:
        """Forget a dataset that nothing is left of."""
        with self.database.write() as connection:
            connection.execute(sa.delete(datasets).where(datasets.c.url == url))

    def expired_datasets(self) -> list[StoredDataset]:
        """Return the datasets that have reports past their retention."""
        over = datasets.c.first < self.hour() - datasets.c.retention
        with self.database.read() as connection:
            rows = connection.execute(sa.select(datasets).where(over).order_by(datasets.c.id))
            return [StoredDataset(**row._mapping) for row in rows]

    def shorten_dataset(self, id: int, first: int | None) -> None:
        """Note the first hour that a dataset has left; None for one that has nothing left, and is
        forgotten.
        """
        this = datasets.c.id == id
        with self.database.write() as connection:
            if first is None:
                connection.execute(sa.delete(datasets).where(this))
            else:
                connection.execute(sa.update(datasets).where(this).values(first=first))

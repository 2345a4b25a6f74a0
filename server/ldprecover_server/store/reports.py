"""The packed reports of a round, read back from its segments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from ldprecover_server.errors import ReportsGoneError
from ldprecover_server.store.database import Database
from ldprecover_server.store.schema import segments

__all__ = ["StoredReports"]

_AT_ONCE = 64  # segments


@dataclass(frozen=True)
class StoredReports:
    """The segments that a round had at one moment, and how many reports they hold.

    Iterating reads them, some at a time and in the same order each time; no transaction stays open meanwhile.
    """

    database: Database
    ids: Sequence[int]
    n: int

    def __iter__(self) -> Iterator[bytes]:
        """Yield the packed bytes of each segment. Raises ReportsGoneError when they are deleted meanwhile."""
        for start in range(0, len(self.ids), _AT_ONCE):
            wanted = self.ids[start : start + _AT_ONCE]
            query = sa.select(segments.c.data).where(segments.c.id.in_(wanted)).order_by(segments.c.id)
            with self.database.read() as connection:
                found = connection.scalars(query).all()
            if len(found) < len(wanted):
                raise ReportsGoneError("reports of the round were deleted while they were read")
            yield from found

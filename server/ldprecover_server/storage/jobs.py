"""Analyses that are asked for now and read later, in the database, where every process of a server
finds them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from ldprecover_server.errors import AnalysesBusyError, JobNotFoundError, RoundNotFoundError
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.schema import jobs, rounds

JobState = Literal["queued", "running", "done", "failed", "cancelled"]

DEAD_SECONDS = 10
"""A job whose process has said nothing for so long has failed with it."""
KEPT_SECONDS = 3600
"""So long after it was asked for, a job that has ended is kept."""
KEPT = 100
"""Jobs that are kept at most."""
KEPT_BYTES = 1 << 26
"""Bytes of results that are kept at most, beside the last one."""

_UNDER_WAY = ("queued", "running")


@dataclass(frozen=True)
class StoredJob:
    """A job; `result` of one that is done, `error` of one that failed, unless it failed with its
    process.
    """

    id: str
    state: JobState
    progress: float
    result: bytes | None
    error: str | None


class StoredJobs:
    """The table of jobs. Methods are safe to call from several threads.

    Only the process that works on a job writes its progress and its end, and anyone cancels it; who
    comes first is right. Clocks of several machines must agree to within seconds.

    A transaction locks the round first, and then jobs in the order of their ids, so that no two can
    deadlock.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def add(self, id: str, seq: int, *, keyed: bool) -> None:
        """Add a job of a round, in the place of the oldest that has ended if there are many.

        Jobs of callers with a key make room for no caller without one. Raises RoundNotFoundError,
        and AnalysesBusyError where no job can make room.
        """
        now = self._now()
        row = {
            "id": id,
            "round": seq,
            "keyed": keyed,
            "state": "queued",
            "progress": 0.0,
            "created": now,
            "heartbeat": now,
        }
        kept = sa.select(jobs.c.id, jobs.c.keyed, _ended(now).label("ended"))
        # Held until this has ended, so that the round cannot go meanwhile.
        there = sa.select(rounds.c.seq).where(rounds.c.seq == seq, rounds.c.state != "gone")
        with self._database.write() as connection:
            if connection.scalar(there.with_for_update(read=True, key_share=True)) is None:
                raise RoundNotFoundError("the round was deleted")
            found = connection.execute(kept.order_by(jobs.c.keyed, jobs.c.created, jobs.c.id)).all()
            surplus = 1 + len(found) - KEPT
            if surplus > 0:
                ids = [each.id for each in found if each.ended and (keyed or not each.keyed)][
                    :surplus
                ]
                if len(ids) < surplus:
                    raise AnalysesBusyError(
                        f"{KEPT} jobs are under way or kept for callers with a key"
                    )
                delete_jobs(connection, jobs.c.id.in_(ids))
            connection.execute(sa.insert(jobs), row)

    def find(self, seq: int, id: str) -> StoredJob:
        """Return a job of a round. Raises JobNotFoundError."""
        query = sa.select(jobs).where(jobs.c.id == id, jobs.c.round == seq)
        with self._database.read() as connection:
            row = None if "\0" in id else connection.execute(query).one_or_none()
        if row is None:
            raise JobNotFoundError(f"the round has no job {id[:80]!r}")
        dead = row.state in _UNDER_WAY and row.heartbeat < self._now() - DEAD_SECONDS
        return StoredJob(
            row.id, "failed" if dead else row.state, row.progress, row.result, row.error
        )

    def beat(self, progress: Mapping[str, tuple[JobState, float]]) -> set[str]:
        """Write state and progress of jobs that are worked on; return those that are cancelled or
        gone.
        """
        over = set()
        with self._database.write() as connection:
            for id, (state, done) in sorted(progress.items()):
                mine = sa.update(jobs).where(jobs.c.id == id, jobs.c.state.in_(_UNDER_WAY))
                values = {"state": state, "progress": done, "heartbeat": self._now()}
                if not connection.execute(mine.values(values)).rowcount:
                    over.add(id)
        return over

    def end(
        self, id: str, state: JobState, *, result: bytes | None = None, error: str | None = None
    ) -> None:
        """Write the end of a job, unless it has ended before; forget results for it, the oldest
        first.
        """
        values = {"state": state, "progress": 1.0, "result": result, "error": error}
        size = sa.func.length(jobs.c.result)
        others = sa.select(jobs.c.id, size).where(jobs.c.id != id, jobs.c.result.is_not(None))
        with self._database.write() as connection:
            mine = sa.update(jobs).where(jobs.c.id == id, jobs.c.state.in_(_UNDER_WAY))
            if not connection.execute(mine.values(values)).rowcount:
                return
        # In a transaction of its own, for its lock is one among those of the others.
        room, surplus = KEPT_BYTES - len(result or b""), []
        newest_first = others.order_by(jobs.c.keyed.desc(), jobs.c.created.desc(), jobs.c.id)
        with self._database.write() as connection:
            for other, length in connection.execute(newest_first).all():
                room -= length
                if room < 0:
                    surplus.append(other)
            if surplus:
                delete_jobs(connection, jobs.c.id.in_(surplus))

    def cancel(self, seq: int, id: str) -> None:
        """Cancel a job of a round; one that has ended stays what it is. Raises JobNotFoundError."""
        self.find(seq, id)
        with self._database.write() as connection:
            mine = sa.update(jobs).where(jobs.c.id == id, jobs.c.state.in_(_UNDER_WAY))
            connection.execute(mine.values(state="cancelled"))

    def expire(self) -> int:
        """Forget jobs that ended and were asked for long ago; return how many."""
        now = self._now()
        old = sa.and_(jobs.c.created < now - KEPT_SECONDS, _ended(now))
        with self._database.read() as connection:
            if connection.scalar(sa.select(jobs.c.id).where(old).limit(1)) is None:
                return 0  # nearly always: then nobody waits for this to write
        with self._database.write() as connection:
            return delete_jobs(connection, old)

    def _now(self) -> int:
        return int(self._clock().timestamp())


def delete_jobs(connection: sa.Connection, which: sa.ColumnElement[bool]) -> int:
    """Delete jobs, and return how many; they are locked in the order of their ids first."""
    ids = connection.scalars(
        sa.select(jobs.c.id).where(which).order_by(jobs.c.id).with_for_update()
    ).all()
    connection.execute(sa.delete(jobs).where(jobs.c.id.in_(ids)))
    return len(ids)


def _ended(now: int) -> sa.ColumnElement[bool]:
    return sa.or_(jobs.c.state.not_in(_UNDER_WAY), jobs.c.heartbeat < now - DEAD_SECONDS)

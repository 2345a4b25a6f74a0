"""Analyses that callers read later, in the database, so that every server process finds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from ldprecover_server.errors import AnalysesBusyError, JobNotFoundError
from ldprecover_server.storage.base import Repository
from ldprecover_server.storage.large_values import read_large_value
from ldprecover_server.storage.rounds import lock_round
from ldprecover_server.storage.schema import jobs

JobAnalysis = Literal["recovery", "certificate"]
JobState = Literal["queued", "running", "done", "failed", "cancelled"]

DEAD_SECONDS = 10
"""A job has failed if its process has sent no heartbeat for this long."""
MAX_AGE_SECONDS = 3600
"""How long after its creation an ended job is kept."""
MAX_JOBS = 100
"""Maximum number of stored jobs."""
MAX_RESULT_BYTES = 1 << 26
"""Maximum total size of stored results, apart from the latest one."""

_UNDER_WAY = ("queued", "running")


@dataclass(frozen=True)
class StoredJob:
    """A job with its `result` if done, or its `problem` if failed, both as JSON.

    `problem` is None if the job's process died.
    """

    id: str
    analysis: JobAnalysis
    state: JobState
    progress: float
    result: bytes | None
    problem: str | None


class Jobs(Repository):
    """The jobs of a database.

    Only the process that runs a job writes its progress and its end; any process cancels it; the
    first end counts. Clocks of several machines must agree to within seconds.

    A transaction locks the round first and then jobs by ascending id, so that none deadlock.
    """

    def add(self, id: str, seq: int, analysis: JobAnalysis, *, keyed: bool) -> None:
        """Add a job of a round; above MAX_JOBS it replaces the oldest ended job.

        A job without an access key never replaces one with a key. Raises RoundNotFoundError, and
        AnalysesBusyError if no job can be replaced.
        """
        now = self._seconds()
        row = {
            "id": id,
            "round": seq,
            "analysis": analysis,
            "keyed": keyed,
            "state": "queued",
            "progress": 0.0,
            "created": now,
            "heartbeat": now,
        }
        query = sa.select(jobs.c.id, jobs.c.keyed, _ended(now).label("ended"))
        with self.database.write() as connection:
            lock_round(connection, seq)
            stored = connection.execute(
                query.order_by(jobs.c.keyed, jobs.c.created, jobs.c.id)
            ).all()
            surplus = 1 + len(stored) - MAX_JOBS
            if surplus > 0:
                replaceable = [job.id for job in stored if job.ended and (keyed or not job.keyed)]
                if len(replaceable) < surplus:
                    raise AnalysesBusyError(
                        f"{MAX_JOBS} jobs are under way or kept for callers with a key"
                    )
                delete_jobs(connection, jobs.c.id.in_(replaceable[:surplus]))
            connection.execute(sa.insert(jobs), row)

    def find(self, seq: int, id: str) -> StoredJob:
        """Return a job of a round. Raises JobNotFoundError."""
        with self.database.read() as connection:
            row = _find(connection, seq, id)
            result = read_large_value(connection, jobs.c.result, jobs.c.id == id)
        is_dead = row.state in _UNDER_WAY and row.heartbeat < self._seconds() - DEAD_SECONDS
        state: JobState = "failed" if is_dead else row.state
        return StoredJob(row.id, row.analysis, state, row.progress, result, row.problem)

    def heartbeat(self, progress: Mapping[str, tuple[JobState, float]]) -> set[str]:
        """Write state and progress of running jobs; return those that are cancelled or deleted."""
        over = set()
        with self.database.write() as connection:
            for id, (state, fraction) in sorted(progress.items()):
                values = {"state": state, "progress": fraction, "heartbeat": self._seconds()}
                if not connection.execute(_update_running(id).values(values)).rowcount:
                    over.add(id)
        return over

    def finish(
        self, id: str, state: JobState, *, result: bytes | None = None, problem: str | None = None
    ) -> None:
        """Write a job's end unless it has ended; delete the oldest results above the limit."""
        values = {"state": state, "progress": 1.0, "result": result, "problem": problem}
        with self.database.write() as connection:
            if not connection.execute(_update_running(id).values(values)).rowcount:
                return
        # A second transaction, because jobs must be locked by ascending id.
        size = sa.func.length(jobs.c.result)
        others = sa.select(jobs.c.id, size).where(jobs.c.id != id, jobs.c.result.is_not(None))
        newest_first = others.order_by(jobs.c.keyed.desc(), jobs.c.created.desc(), jobs.c.id)
        remaining_bytes, surplus = MAX_RESULT_BYTES - len(result or b""), []
        with self.database.write() as connection:
            for other, length in connection.execute(newest_first).all():
                remaining_bytes -= length
                if remaining_bytes < 0:
                    surplus.append(other)
            if surplus:
                delete_jobs(connection, jobs.c.id.in_(surplus))

    def cancel(self, seq: int, id: str) -> None:
        """Cancel a job of a round unless it has ended. Raises JobNotFoundError."""
        with self.database.write() as connection:
            _find(connection, seq, id)
            connection.execute(_update_running(id).values(state="cancelled"))

    def expire(self) -> int:
        """Delete ended jobs older than MAX_AGE_SECONDS; return how many."""
        now = self._seconds()
        is_old = sa.and_(jobs.c.created < now - MAX_AGE_SECONDS, _ended(now))
        with self.database.read() as connection:
            # Usually nothing has expired, and a write would make others wait.
            if connection.scalar(sa.select(jobs.c.id).where(is_old).limit(1)) is None:
                return 0
        with self.database.write() as connection:
            return delete_jobs(connection, is_old)

    def _seconds(self) -> int:
        return int(self.clock().timestamp())


def delete_jobs(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> int:
    """Delete jobs after locking them by ascending id; return how many."""
    ids = connection.scalars(
        sa.select(jobs.c.id).where(condition).order_by(jobs.c.id).with_for_update()
    ).all()
    connection.execute(sa.delete(jobs).where(jobs.c.id.in_(ids)))
    return len(ids)


def _find(connection: sa.Connection, seq: int, id: str) -> Any:
    columns = [column for column in jobs.c if column is not jobs.c.result]
    query = sa.select(*columns).where(jobs.c.id == id, jobs.c.round == seq)
    row = None if "\0" in id else connection.execute(query).one_or_none()
    if row is None:
        raise JobNotFoundError(f"the round has no job {id[:80]!r}")
    return row


def _update_running(id: str) -> sa.Update:
    return sa.update(jobs).where(jobs.c.id == id, jobs.c.state.in_(_UNDER_WAY))


def _ended(now: int) -> sa.ColumnElement[bool]:
    return sa.or_(jobs.c.state.not_in(_UNDER_WAY), jobs.c.heartbeat < now - DEAD_SECONDS)

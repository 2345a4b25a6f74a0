"""Group commit: the process's one writer, which stores what waits and only then answers."""

import asyncio
import collections
import functools
import hashlib
import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ldprecover import FrequencyOracle, Tally, wire
from ldprecover.quarantine import split_by_size
from ldprecover_server.deadlines import Deadlines
from ldprecover_server.errors import (
    KeyReusedError,
    QueueFullError,
    RoundClosedError,
    RoundNotFoundError,
    ServiceError,
    StorageFullError,
    StoreUnavailableError,
)
from ldprecover_server.metrics import Metrics
from ldprecover_server.shuffle import shuffled
from ldprecover_server.store import Outcome, Sealed, Store

__all__ = ["Ingest", "Submission"]

_log = logging.getLogger(__name__)

_KEY_BYTES = 16
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between the tries of one commit


class Submission:
    """One submission on its way: `packed` reports, checked; key and digest taken; the answer awaited.

    Only 16 bytes of SHA-256 of the submission key are kept, and a digest of the packed reports
    that is salted with the key itself: without the key, neither tells anything of the report. With
    `quarantine` the round sets reports of impossible sizes aside.
    """

    __slots__ = ("cells", "digest", "future", "key", "oracle", "packed", "quarantine", "seq")

    def __init__(
        self,
        seq: int,
        oracle: FrequencyOracle,
        submission_key: str,
        packed: bytes | bytearray,
        *,
        quarantine: bool = False,
    ) -> None:
        key = submission_key.encode("ascii")
        self.seq = seq
        self.oracle = oracle
        self.packed = packed
        self.quarantine = quarantine
        self.cells = len(packed) // oracle.report_size * oracle.hash_tests
        self.key = hashlib.sha256(key).digest()[:_KEY_BYTES]
        digest = hashlib.sha256(key + b"\0")
        digest.update(packed)
        self.digest = digest.digest()[:_KEY_BYTES]
        self.future: asyncio.Future[bool] | None = None


@dataclass
class _Batch:
    """The submissions of one group for one round, counted before the transaction begins."""

    seq: int
    submissions: list[Submission] = field(default_factory=list)
    whole: Sealed | None = None
    aside: int = 0
    """Reports that were set aside of what was sealed last."""

    def count(self) -> None:
        self.whole = self._sealed(self.submissions)

    def seal(self, fresh: Sequence[int]) -> Sealed:
        assert self.whole is not None
        all_of_it = len(fresh) == len(self.submissions)
        sealed = self.whole if all_of_it else self._sealed([self.submissions[i] for i in fresh])
        self.aside = sealed.aside_n
        return sealed

    @staticmethod
    def _sealed(submissions: list[Submission]) -> Sealed:
        oracle = submissions[0].oracle
        # Joined as bytes: numpy takes far longer to join many small arrays.
        packed = (
            b"".join(submission.packed for submission in submissions) if len(submissions) > 1 else submissions[0].packed
        )
        reports = np.frombuffer(packed, dtype=oracle.report_dtype)
        # Shuffled, so that a stored report's place says nothing of the submission it came in.
        if submissions[0].quarantine:
            bad, tally = split_by_size(oracle, reports)
            aside = reports[bad]
            return Sealed(wire.pack(shuffled(reports[~bad])), tally, wire.pack(shuffled(aside)), len(aside))
        return Sealed(wire.pack(shuffled(reports)), Tally.of(oracle, reports))


class Ingest:
    """Stores submissions in groups: one writer a process, one group at a time.

    There is no timer: while one group commits, the next gathers, at most `group_bytes` of it, and
    at most `group_cells` items to hash, so that none is counted for long. A submission is answered
    when the transaction that holds it is on disk. At most `max_waiting` submissions wait, each at
    most `waiting_seconds`; then it is answered that its outcome is not known, and dropped if no
    group has it yet. A commit that fails for want of the database is tried again for as long. The
    event loop and the writer meet once a group, not once a submission: every meeting costs a change
    of thread. While anyone waits the writer takes group after group by itself.
    """

    def __init__(
        self,
        store: Store,
        *,
        max_waiting: int,
        group_bytes: int,
        group_cells: int = 1 << 31,
        waiting_seconds: float = 30.0,
        metrics: Metrics | None = None,
    ) -> None:
        self._store = store
        self._waiting_seconds = waiting_seconds
        self._deadlines = Deadlines(waiting_seconds)
        self._metrics = metrics or Metrics()
        self._stopping = threading.Event()
        self._storage_full = False  # the last commit found the disk so
        self._max_waiting = max_waiting
        self._group_bytes = group_bytes
        self._group_cells = group_cells
        self._groups: queue.SimpleQueue[list[Submission] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ldprecover-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gathering: collections.deque[Submission] = collections.deque()
        self._taking = threading.Lock()  # held to take submissions out; they are put in without it
        # Touched in the event loop alone:
        self._committing = False  # the writer has a group, and takes the next by itself
        self.waiting = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the writer; submissions come from `loop` and are answered in it."""
        self._loop = loop
        self._thread.start()

    def stop(self) -> None:
        """Stop the writer once the group it has is stored. Whoever still waits must have been answered."""
        self._stopping.set()
        self._groups.put(None)
        self._thread.join(self._waiting_seconds)
        if self._thread.is_alive():  # nobody waits any more: whoever did has been answered that it is not known
            _log.warning("the database has not answered the last commit; the process ends without its answer")

    def check_ready(self) -> None:
        """Raise QueueFullError, StorageFullError or StoreUnavailableError unless a submission could be stored now."""
        self._check_queue()
        if self._storage_full:
            self._store.check_room()
            self._storage_full = False
        else:
            self._store.check_writable()

    def _check_queue(self) -> None:
        if self.waiting >= self._max_waiting:
            raise QueueFullError(f"{self.waiting} submissions wait for their commit")

    async def submit(self, submission: Submission) -> bool:
        """Store a submission; return whether it was a duplicate of one stored before.

        Raises QueueFullError, RoundNotFoundError, RoundClosedError, KeyReusedError,
        StorageFullError or StoreUnavailableError.
        """
        assert self._loop is not None
        self._check_queue()
        submission.future = self._loop.create_future()
        self._gathering.append(submission)
        self.waiting += 1
        if not self._committing:
            self._committing = True
            self._loop.call_soon(self._hand_over)  # not at once: others may come in this turn of the loop
        deadline = self._deadlines.add(functools.partial(self._expire, submission))
        try:
            duplicate = await submission.future
        finally:
            self._deadlines.remove(deadline)
            self.waiting -= 1
        if duplicate:
            self._metrics.duplicates.inc()
        return duplicate

    def _expire(self, submission: Submission) -> None:
        if submission.future is not None and not submission.future.done():
            submission.future.set_exception(
                StoreUnavailableError(f"the submission has waited {self._waiting_seconds:g} seconds for its commit")
            )
        # They wait in the order in which they came: whoever is answered stands first.
        with self._taking:
            while self._gathering and self._gathering[0].future is not None and self._gathering[0].future.done():
                self._gathering.popleft()

    def _take(self) -> list[Submission]:
        """Return the next group, of those who have come first and still wait."""
        group: list[Submission] = []
        size = cells = 0
        with self._taking:
            while self._gathering and size < self._group_bytes and cells < self._group_cells:
                submission = self._gathering.popleft()
                if submission.future is not None and submission.future.done():  # it waits no more
                    continue
                group.append(submission)
                size += len(submission.packed)
                cells += submission.cells
        return group

    def _hand_over(self) -> None:
        group = self._take()
        self._metrics.queue.set(len(self._gathering) + len(group))
        self._committing = bool(group)
        if group:
            self._groups.put(group)

    def _run(self) -> None:
        assert self._loop is not None
        while (group := self._groups.get()) is not None:
            while group:
                outcomes = self._commit(group)
                # Without waiting for the event loop, which may be in the midst of reading others.
                following = self._take()
                self._loop.call_soon_threadsafe(self._deliver, group, outcomes, not following)
                group = following

    def _deliver(self, group: list[Submission], outcomes: list[Outcome] | ServiceError, last: bool) -> None:
        if last:
            self._hand_over()
        self._metrics.queue.set(max(0, self.waiting - len(group)))
        for i, submission in enumerate(group):
            future = submission.future
            if future is None or future.done():  # the request was cancelled
                continue
            outcome = outcomes[i] if isinstance(outcomes, list) else outcomes
            if outcome is Outcome.STORED or outcome is Outcome.DUPLICATE:
                future.set_result(outcome is Outcome.DUPLICATE)
            else:
                future.set_exception(_refusal(outcome))

    def _commit(self, group: list[Submission]) -> list[Outcome] | ServiceError:
        by_round: dict[int, _Batch] = {}
        for submission in group:
            by_round.setdefault(submission.seq, _Batch(submission.seq)).submissions.append(submission)
        batches = list(by_round.values())
        metrics = self._metrics
        try:
            with metrics.counting_seconds.time():
                for batch in batches:
                    batch.count()
            with metrics.commit_seconds.time():
                outcomes = self._commit_surely(batches)
            self._storage_full = False
        except ServiceError as error:
            self._storage_full = isinstance(error, StorageFullError)
            _log.warning("a group of %d submissions was not stored: %s", len(group), error)
            return error
        except Exception:  # noqa: BLE001
            # The writer must outlive a fault in one group: its submissions are answered, the next
            # go on.
            _log.exception("a group of %d submissions failed", len(group))
            return StoreUnavailableError("the server failed to store the submission")
        self._count(batches, outcomes)
        by_submission = {
            id(submission): outcome
            for batch, found in zip(batches, outcomes, strict=True)
            for submission, outcome in zip(batch.submissions, found, strict=True)
        }
        return [by_submission[id(submission)] for submission in group]

    def _count(self, batches: list[_Batch], outcomes: list[list[Outcome]]) -> None:
        self._metrics.commit_submissions.observe(sum(len(batch.submissions) for batch in batches))
        stored = [
            len(submission.packed) // submission.oracle.report_size
            for batch, found in zip(batches, outcomes, strict=True)
            for submission, outcome in zip(batch.submissions, found, strict=True)
            if outcome is Outcome.STORED
        ]
        self._metrics.submissions.inc(len(stored))
        self._metrics.reports.inc(sum(stored))
        for batch, found in zip(batches, outcomes, strict=True):
            if batch.aside and Outcome.STORED in found:
                self._metrics.quarantined.labels("size").inc(batch.aside)

    def _commit_surely(self, batches: list[_Batch]) -> list[list[Outcome]]:
        """Commit; when the outcome is unknown run the same transaction again, which finds what was stored."""
        end = time.monotonic() + self._waiting_seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._store.commit(batches)
            except StoreUnavailableError as error:
                if time.monotonic() + pause > end or self._stopping.is_set():
                    raise
                _log.warning("commit is tried again: %s", error)
                self._stopping.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)


def _refusal(outcome: Outcome | ServiceError) -> ServiceError:
    if isinstance(outcome, ServiceError):
        return type(outcome)(str(outcome))  # each waiter raises its own: a shared one would gather tracebacks
    if outcome is Outcome.KEY_REUSED:
        return KeyReusedError("this idempotency key came before with other bytes; nothing of this submission is stored")
    if outcome is Outcome.CLOSED:
        return RoundClosedError("the round is closed; nothing of this submission is stored")
    return RoundNotFoundError("the round was deleted")

"""Group commit: one writer thread stores waiting submissions, and then they are answered."""

import asyncio
import collections
import functools
import logging
import os
import queue
import threading
import time
from collections.abc import Sequence

from ldprecover_server.errors import (
    BusyError,
    InternalError,
    KeyReusedError,
    RoundClosedError,
    RoundNotFoundError,
    ServiceError,
    StoreUnavailableError,
)
from ldprecover_server.ingest.batches import GROUP_TALLY_BYTES, Submission, SubmissionBatch
from ldprecover_server.limits import Timeouts
from ldprecover_server.metrics import Metrics
from ldprecover_server.storage import Batch, Outcome, Storage

Results = dict[Submission, Outcome | ServiceError]

_log = logging.getLogger(__name__)

_MAX_COUNTERS = 8  # threads
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between attempts of one commit


class Ingest:
    """Stores submissions in groups: one writer thread a process, one group at a time.

    There is no timer: the next group gathers while one commits. A group has at most `group_bytes`
    of reports, `group_cells` items to hash, and GROUP_TALLY_BYTES of tallies. Rounds take turns,
    each with all that waits for it: otherwise submissions to many large rounds would fill the
    groups before all others. A round whose tally fits beside theirs goes ahead. A submission is
    answered once its transaction is on disk. At most `max_waiting` submissions wait, each at most
    `waiting_seconds`; then its outcome is unknown, and it is dropped if it is in no group yet. A
    commit is retried for the same time while the database is unavailable. Event loop and writer
    synchronise once a group, because each time costs a thread switch; the writer takes the next
    group itself while submissions wait.

    Submissions that take long to count are counted by other threads first. Meanwhile the writer
    stores other submissions, and counting uses several processors.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        max_waiting: int,
        group_bytes: int,
        group_cells: int,
        waiting_seconds: float,
        metrics: Metrics,
    ) -> None:
        self._storage = storage
        self._waiting_seconds = waiting_seconds
        self._deadlines = Timeouts(waiting_seconds)
        self._metrics = metrics
        self._stopping = threading.Event()
        self._is_failing = False  # since the last attempt of a commit
        self._max_waiting = max_waiting
        self._group_bytes = group_bytes
        self._group_cells = group_cells
        self._groups: queue.SimpleQueue[list[Submission] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ldprecover-writer", daemon=True)
        self._long: collections.deque[Submission] = collections.deque()
        # One True for each submission in `_long`, and one False for each counter at the end.
        self._counts: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._counters = [
            threading.Thread(target=self._count_ahead, name="ldprecover-counter", daemon=True)
            for _ in range(min(max((os.cpu_count() or 1) - 1, 1), _MAX_COUNTERS))
        ]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gathering: collections.OrderedDict[int, collections.deque[Submission]] = (
            collections.OrderedDict()
        )
        """The submissions of each round in the order of arrival; the first round is next."""
        self._taking = threading.Lock()  # for `_gathering`, and for removing from `_long`
        # Used by the event loop alone:
        self._committing = False  # the writer has a group and takes the next one itself
        self.waiting = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the threads; submissions come from `loop` and are answered there."""
        self._loop = loop
        for thread in (self._thread, *self._counters):
            thread.start()

    def stop(self) -> None:
        """Stop the writer after its current group. All submissions must have been answered."""
        self._stopping.set()
        for _ in self._counters:
            self._counts.put(False)
        for counter in self._counters:
            counter.join(self._waiting_seconds)
        self._groups.put(None)
        self._thread.join(self._waiting_seconds)
        if self._thread.is_alive():  # the submissions were answered: outcome unknown
            _log.warning(
                "the database has not answered the last commit; the process ends without its answer"
            )

    def check_ready(self) -> None:
        """Check that a submission could be stored now.

        Raises BusyError, StorageFullError or StoreUnavailableError.
        """
        self._check_queue()
        # A disk that is too full for a commit may have room for a few bytes.
        self._storage.check_writable(with_space=self._is_failing)
        self._is_failing = False

    def _check_queue(self) -> None:
        if self._loop is None:  # an application that was mounted in another, say
            raise StoreUnavailableError("the lifespan of the application was not run")
        if self.waiting >= self._max_waiting:
            raise BusyError(f"{self.waiting} submissions wait for their commit")

    async def submit(self, submission: Submission) -> bool:
        """Store a submission; return whether it is a duplicate of an earlier one.

        Raises BusyError, RoundNotFoundError, RoundClosedError, KeyReusedError,
        StorageFullError, StoreUnavailableError, or InternalError if the protocol cannot count it.
        """
        assert self._loop is not None
        self._check_queue()
        submission.future = self._loop.create_future()
        self.waiting += 1
        if submission.takes_long:
            self._long.append(submission)
            self._counts.put(True)
        else:
            self._gather(submission)
        deadline = self._deadlines.add(functools.partial(self._expire, submission))
        try:
            duplicate = await submission.future
        finally:
            self._deadlines.remove(deadline)
            self.waiting -= 1
        if duplicate:
            self._metrics.duplicates.inc()
        return duplicate

    def _gather(self, submission: Submission) -> None:
        with self._taking:
            self._gathering.setdefault(submission.seq, collections.deque()).append(submission)
        if not self._committing and self._loop is not None:
            self._committing = True
            # In the next iteration of the loop, because this one may bring more submissions.
            self._loop.call_soon(self._hand_over)

    def _count_ahead(self) -> None:
        assert self._loop is not None
        while self._counts.get():
            with self._taking:
                submission = self._long.popleft() if self._long else None
            if submission is None or submission.is_over:
                continue
            try:
                with self._metrics.counting_seconds.time():
                    submission.count()
            except Exception:  # noqa: BLE001
                # The writer counts it again and answers with the error.
                _log.exception("counting a submission ahead failed")
            self._loop.call_soon_threadsafe(self._gather, submission)

    def _expire(self, submission: Submission) -> None:
        if submission.future is not None and not submission.future.done():
            submission.future.set_exception(
                StoreUnavailableError(
                    f"the submission has waited {self._waiting_seconds:g} seconds for its commit"
                )
            )
        # Submissions wait in the order of arrival, so those answered are first.
        with self._taking:
            for waiting in (self._gathering.get(submission.seq), self._long):
                while waiting and waiting[0].is_over:
                    waiting.popleft()
            if not self._gathering.get(submission.seq, True):
                del self._gathering[submission.seq]

    def _take(self) -> list[Submission]:
        """Return the next group: all that wait for the next rounds, within the limits."""
        group: list[Submission] = []
        size = cells = tally_bytes = 0
        with self._taking:
            for seq, waiting in list(self._gathering.items()):
                if size >= self._group_bytes or cells >= self._group_cells:
                    break
                if group and tally_bytes + waiting[0].tally_bytes > GROUP_TALLY_BYTES:
                    continue
                tally_bytes += waiting[0].tally_bytes
                while waiting and size < self._group_bytes and cells < self._group_cells:
                    submission = waiting.popleft()
                    if not submission.is_over:
                        group.append(submission)
                        size += len(submission.packed)
                        cells += submission.cells if submission.counted is None else 0
                if waiting:
                    self._gathering.move_to_end(seq)
                else:
                    del self._gathering[seq]
        return group

    def _hand_over(self) -> None:
        group = self._take()
        self._metrics.queue.set(self.waiting)
        self._committing = bool(group)
        if group:
            self._groups.put(group)

    def _run(self) -> None:
        assert self._loop is not None
        while (group := self._groups.get()) is not None:
            while group:
                results = self._commit(group)
                # Without waiting for the event loop, which may be reading other requests.
                following = self._take()
                self._loop.call_soon_threadsafe(self._deliver, group, results, not following)
                group = following

    def _deliver(self, group: list[Submission], results: Results, last: bool) -> None:
        if last:
            self._hand_over()
        self._metrics.queue.set(max(0, self.waiting - len(group)))
        for submission in group:
            future = submission.future
            if future is None or future.done():  # the request was cancelled
                continue
            outcome = results[submission]
            if outcome is Outcome.STORED or outcome is Outcome.DUPLICATE:
                future.set_result(outcome is Outcome.DUPLICATE)
            else:
                future.set_exception(_error_of(outcome))

    def _commit(self, group: list[Submission]) -> Results:
        """Return the outcome of every submission, whatever is raised: a request waits for each."""
        try:
            return self._store(group)
        except ServiceError as error:
            self._is_failing = True
            _log.warning("a group of submissions (%d) was not stored: %s", len(group), error)
            return dict.fromkeys(group, error)
        except BaseException:  # noqa: BLE001
            # The writer must survive it: the next groups must be stored.
            protocols = ", ".join(sorted({submission.oracle.protocol for submission in group}))
            _log.exception("a group of submissions (%d) of %s failed", len(group), protocols)
            rounds = {submission.seq for submission in group}
            if len(rounds) == 1:
                return dict.fromkeys(group, InternalError())
        results: Results = {}
        for seq in rounds:  # the error may be of one round
            results |= self._commit([each for each in group if each.seq == seq])
        return results

    def _store(self, group: list[Submission]) -> Results:
        by_round: dict[int, list[Submission]] = {}
        for submission in group:
            by_round.setdefault(submission.seq, []).append(submission)
        metrics = self._metrics
        results: Results = {}
        with metrics.counting_seconds.time():
            batches = [SubmissionBatch(submissions) for submissions in by_round.values()]
        with metrics.commit_seconds.time():
            outcomes = self._commit_with_retries(batches)
        self._is_failing = False
        stored = []
        for submissions, batch_outcomes in zip(by_round.values(), outcomes, strict=True):
            for submission, outcome in zip(submissions, batch_outcomes, strict=True):
                results[submission] = outcome
                if outcome is Outcome.STORED:
                    stored.append(len(submission.packed) // submission.oracle.wire.size)
        metrics.commit_submissions.observe(len(group))
        metrics.submissions.inc(len(stored))
        metrics.reports.inc(sum(stored))
        return results

    def _commit_with_retries(self, batches: Sequence[Batch]) -> list[list[Outcome]]:
        """Commit; on an unknown outcome repeat the transaction, which finds what was stored."""
        end = time.monotonic() + self._waiting_seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._storage.commit(batches)
            except StoreUnavailableError as error:
                self._is_failing = True
                if time.monotonic() + pause > end or self._stopping.is_set():
                    raise
                _log.warning("the commit is retried: %s", error)
                self._stopping.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)


def _error_of(outcome: Outcome | ServiceError) -> ServiceError:
    if isinstance(outcome, ServiceError):
        # A new error for each submission: a shared one would collect tracebacks.
        return type(outcome)(str(outcome))
    if outcome is Outcome.KEY_REUSED:
        return KeyReusedError(
            "this idempotency key was used before with other bytes; nothing of this submission "
            "is stored"
        )
    if outcome is Outcome.CLOSED:
        return RoundClosedError("the round is closed; nothing of this submission is stored")
    return RoundNotFoundError("the round was deleted")

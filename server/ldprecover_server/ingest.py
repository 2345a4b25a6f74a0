"""Group commit: the process's one writer, which stores what waits and only then answers."""

import asyncio
import collections
import hashlib
import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ldprecover import FrequencyOracle, Tally, wire
from ldprecover_server.errors import (
    KeyReusedError,
    QueueFullError,
    RoundClosedError,
    RoundNotFoundError,
    ServiceError,
    StoreUnavailableError,
)
from ldprecover_server.store import Outcome, Sealed, Store

__all__ = ["Ingest", "Submission"]

_log = logging.getLogger(__name__)

_KEY_BYTES = 16
_TRIES = 4
_GATHERED = 256  # submissions after which a group waits for no more


class Submission:
    """One submission on its way: `packed` reports, checked; key and digest taken; the answer awaited.

    Only 16 bytes of SHA-256 of the idempotency key are kept, and a digest of the packed reports
    that is salted with the key itself: without the key, neither tells anything of the report.
    """

    __slots__ = ("digest", "future", "key", "oracle", "packed", "seq")

    def __init__(self, seq: int, oracle: FrequencyOracle, idempotency_key: str, packed: bytes | bytearray) -> None:
        key = idempotency_key.encode("ascii")
        self.seq = seq
        self.oracle = oracle
        self.packed = packed
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

    def count(self, rng: np.random.Generator) -> None:
        self.whole = self._sealed(self.submissions, rng)

    def seal(self, fresh: Sequence[int]) -> Sealed:
        assert self.whole is not None
        if len(fresh) == len(self.submissions):
            return self.whole
        return self._sealed([self.submissions[i] for i in fresh], np.random.default_rng())

    @staticmethod
    def _sealed(submissions: list[Submission], rng: np.random.Generator) -> Sealed:
        oracle = submissions[0].oracle
        # Joined as bytes: numpy takes far longer to join many small arrays.
        packed = (
            b"".join(submission.packed for submission in submissions) if len(submissions) > 1 else submissions[0].packed
        )
        reports = np.frombuffer(packed, dtype=oracle.report_dtype)
        # Shuffled, so that a stored report's place says nothing of the submission it came in.
        shuffled = reports[rng.permutation(len(reports))] if len(reports) > 1 else reports
        return Sealed(wire.pack(shuffled), Tally.of(oracle, reports))


class Ingest:
    """Stores submissions in groups: one writer a process, one group at a time.

    There is no timer: while one group commits, the next gathers, at most `group_bytes` of it. A
    submission is answered when the transaction that holds it is on disk. At most `max_waiting`
    submissions wait. The event loop and the writer meet once a group, not once a submission:
    every meeting costs a change of thread.
    """

    def __init__(self, store: Store, *, max_waiting: int, group_bytes: int) -> None:
        self._store = store
        self._max_waiting = max_waiting
        self._group_bytes = group_bytes
        self._rng = np.random.default_rng()
        self._groups: queue.SimpleQueue[list[Submission] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ldprecover-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        # Touched in the event loop alone:
        self._gathering: collections.deque[Submission] = collections.deque()
        self._committing = False
        self.waiting = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the writer; submissions come from `loop` and are answered in it."""
        self._loop = loop
        self._thread.start()

    def stop(self) -> None:
        """Stop the writer once the group it has is stored. Whoever still waits must have been answered."""
        self._groups.put(None)
        self._thread.join()

    async def submit(self, submission: Submission) -> bool:
        """Store a submission; return whether it was a duplicate of one stored before.

        Raises QueueFullError, RoundNotFoundError, RoundClosedError, KeyReusedError,
        StorageFullError or StoreUnavailableError.
        """
        assert self._loop is not None
        if self.waiting >= self._max_waiting:
            raise QueueFullError(f"{self.waiting} submissions wait for their commit")
        submission.future = self._loop.create_future()
        self._gathering.append(submission)
        self.waiting += 1
        if not self._committing:
            self._committing = True
            self._loop.call_soon(self._gather, 0)
        try:
            return await submission.future
        finally:
            self.waiting -= 1

    def _gather(self, seen: int) -> None:
        """Hand over once a turn of the loop has brought nobody new: who comes together goes together."""
        assert self._loop is not None
        if len(self._gathering) > seen and len(self._gathering) < _GATHERED:
            self._loop.call_soon(self._gather, len(self._gathering))
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        group: list[Submission] = []
        size = 0
        while self._gathering and size < self._group_bytes:
            group.append(self._gathering.popleft())
            size += len(group[-1].packed)
        self._committing = bool(group)
        if group:
            self._groups.put(group)

    def _run(self) -> None:
        assert self._loop is not None
        while (group := self._groups.get()) is not None:
            self._loop.call_soon_threadsafe(self._deliver, group, self._commit(group))

    def _deliver(self, group: list[Submission], outcomes: list[Outcome] | ServiceError) -> None:
        self._gather(0)
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
        try:
            for batch in batches:
                batch.count(self._rng)
            outcomes = self._commit_surely(batches)
        except ServiceError as error:
            _log.warning("a group of %d submissions was not stored: %s", len(group), error)
            return error
        except Exception:  # noqa: BLE001
            # The writer must outlive a fault in one group: its submissions are answered, the next go on.
            _log.exception("a group of %d submissions failed", len(group))
            return StoreUnavailableError("the server failed to store the submission")
        by_submission = {
            id(submission): outcome
            for batch, found in zip(batches, outcomes, strict=True)
            for submission, outcome in zip(batch.submissions, found, strict=True)
        }
        return [by_submission[id(submission)] for submission in group]

    def _commit_surely(self, batches: list[_Batch]) -> list[list[Outcome]]:
        """Commit; when the outcome is unknown run the same transaction again, which finds what was stored."""
        for attempt in range(_TRIES - 1):
            try:
                return self._store.commit(batches)
            except StoreUnavailableError as error:
                _log.warning("commit is tried again: %s", error)
                time.sleep(0.05 * 2**attempt)
        return self._store.commit(batches)


def _refusal(outcome: Outcome | ServiceError) -> ServiceError:
    if isinstance(outcome, ServiceError):
        return type(outcome)(str(outcome))  # each waiter raises its own: a shared one would gather tracebacks
    if outcome is Outcome.KEY_REUSED:
        return KeyReusedError("this idempotency key came before with other bytes; nothing of this submission is stored")
    if outcome is Outcome.CLOSED:
        return RoundClosedError("the round is closed; nothing of this submission is stored")
    return RoundNotFoundError("the round was deleted")

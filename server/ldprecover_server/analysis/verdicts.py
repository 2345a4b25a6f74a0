"""Verdicts: the recommended recovery of each round, computed unasked.

That of a closed round is kept. On an open round the verdict is computed again as the round grows.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass

from ldprecover.errors import ParameterError
from ldprecover.items import largest
from ldprecover.recovery.conclusions import Conclusions, attack_sentences, attack_word
from ldprecover.sentences import is_noise
from ldprecover_interface.verdicts import (
    MAX_RAISED,
    MAX_TOP,
    MAX_TOP_LABEL,
    TopItem,
    UnseenGain,
    Verdict,
)
from ldprecover_server.analysis.analyses import Analyses, Analysis
from ldprecover_server.analysis.tasks import Task, VerdictResult, pack, unpack
from ldprecover_server.analysis.worker_pool import WorkerPool
from ldprecover_server.errors import (
    AnalysesBusyError,
    AnalysisFailedError,
    AnalysisTimeoutError,
    AnalysisTooLargeError,
    ReportsGoneError,
    RoundDamagedError,
    RoundNotFoundError,
    ServiceError,
)
from ldprecover_server.limits import ThreadPool
from ldprecover_server.metrics import Metrics
from ldprecover_server.rounds import Rounds
from ldprecover_server.storage import NEAR_CERTAIN, ONCE, Storage, StoredRound

_log = logging.getLogger(__name__)

_FAILURES = (
    AnalysisFailedError,
    AnalysisTimeoutError,
    AnalysisTooLargeError,
    ParameterError,
    RoundDamagedError,
)
"""Errors of a computation that would fail again."""

_PERIOD = 30.0
"""Seconds after which rounds are found that have grown, or that another process closed."""

_REST = 3
"""Times its own duration that the server rests after a verdict on an open round: reading reports
and writing verdicts delay submissions."""


class _ClaimedError(Exception):
    """Another process computes the verdict, or has; or the round was closed meanwhile."""


class _Claim:
    """This process's claim of a round. `take` may run in another thread, also after `release`."""

    def __init__(self, storage: Storage, round: StoredRound) -> None:
        self._verdicts = storage.verdicts
        self._round = round
        self._claim: int | None = None
        self.at = 0.0
        """When it was taken, on the monotonic clock."""
        self.n = 0
        """The number of reports that the verdict is computed from."""
        self._lock = threading.Lock()
        self._is_released = False

    def take(self, n: int) -> None:
        """Claim the round with n reports. Raises _ClaimedError."""
        with self._lock:
            if not self._is_released:
                self.n = n
                self.at = time.monotonic()
                self._claim = self._verdicts.claim(self._round.seq, self._round.state, n)
            if self._claim is None:
                raise _ClaimedError

    def release(self) -> None:
        """Let other processes claim the round; log if the database fails."""
        with self._lock:
            self._is_released = True
            if self._claim is None:
                return
            try:
                self._verdicts.release(self._round.seq, self._claim)
            except ServiceError as error:
                _log.warning("the claim of a round ends by itself: %s", error)


@dataclass(eq=False)
class Verdicts:
    """A background task that computes and stores the verdicts of rounds, one at a time.

    Several processes may run it on one database; they claim rounds. It takes a worker only while no
    caller needs it. A closed round that exceeds a limit of time, memory or disk has no verdict from
    this process, an open one none before it has grown. A round has none if the recovery would read
    more than `max_reports` or `disk_bytes` of them. For use in one event loop.
    """

    storage: Storage
    rounds: Rounds
    analyses: Analyses
    workers: WorkerPool
    _: KW_ONLY
    max_reports: int
    disk_bytes: int
    metrics: Metrics

    def __post_init__(self) -> None:
        self._threads = ThreadPool(1)
        self._woken = asyncio.Event()
        self._given_up: set[str] = set()

    def wake(self) -> None:
        """Look for rounds now."""
        self._woken.set()

    async def run(self) -> None:
        """Run until cancelled; return immediately if no verdicts are kept."""
        while self.max_reports:
            try:
                await self.compute_missing()
            except ServiceError as error:
                _log.warning("verdicts wait: %s", error)
            except Exception:  # noqa: BLE001  otherwise no later round would have a verdict
                _log.exception("verdicts failed")
            await self._wait(_PERIOD)

    async def _wait(self, seconds: float) -> None:
        """Wait until `wake` is called, at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    async def drain(self, seconds: float) -> None:
        """Wait until no call to the database runs, at most `seconds`."""
        await self._threads.drain(seconds)

    async def compute_missing(self) -> None:
        """Compute the missing verdicts; end when a round is closed, which comes first.

        After _PERIOD others may have grown more: then it ends too, and `run` looks again.
        """
        self._woken.clear()
        loop = asyncio.get_running_loop()
        end = loop.time() + _PERIOD
        missing = await self._threads.run(self.storage.verdicts.missing)
        self._given_up &= set(missing)  # else it would keep the ids of deleted rounds
        for id in missing:
            if loop.time() > end:
                self.wake()
            if self._woken.is_set():
                return
            if id in self._given_up:
                continue
            try:
                await self._compute(id)
            except (_ClaimedError, AnalysesBusyError, ReportsGoneError, RoundNotFoundError):
                continue  # the next run tries again, if the round is still there
            except _FAILURES as error:
                _log.warning("the round %s has no verdict: %s", id, error)
                self._give_up(id)
            except ServiceError:
                raise
            except Exception:  # noqa: BLE001  the other rounds must have a verdict
                _log.exception("the round %s has no verdict", id)
                self._give_up(id)

    def _give_up(self, id: str) -> None:
        self.metrics.verdicts.labels("failed").inc()
        self._given_up.add(id)

    async def _compute(self, id: str) -> None:
        """Compute and store the verdict of a round. Raises _ClaimedError, and as `run_own`."""
        analysis = await self._threads.run(self._look_up, id)
        if analysis is None:
            self._given_up.add(id)
            return
        claim = _Claim(self.storage, analysis.round)

        def prepare() -> tuple[Task, Iterable[bytes] | None]:
            task, reports = self.analyses.prepare(analysis)
            claim.take(task.tally.n)
            return task, reports

        try:
            packed = await self.workers.run_own(prepare)
            await self._threads.run(self._store, analysis.round, claim.n, packed)
        except BaseException as error:  # a cancellation too
            # Another process need not wait for the claim. An open round fails again until it grows.
            if analysis.round.state == "closed" or not isinstance(error, _FAILURES):
                await self._threads.run(claim.release)
            raise
        self.metrics.verdicts.labels("kept").inc()
        if analysis.round.state == "open":
            await self._wait(_REST * (time.monotonic() - claim.at))

    def _store(self, round: StoredRound, n: int, packed: bytes) -> None:
        result = unpack(VerdictResult, packed)
        verdict = verdict_of(result, self.rounds.items(round), n)
        recovery = None if round.state == "open" else pack(result.recovery)
        json = verdict.to_json().decode()
        words = self.storage.verdicts.add(round.seq, round.state, verdict.attack, json, recovery)
        if words is not None:
            _log_change(round, n, *words)

    def _look_up(self, id: str) -> Analysis[VerdictResult] | None:
        """Return the analysis of a round, or None if it has too many reports."""
        round = self.rounds.find(id)
        analysis, n = self.analyses.verdict(round)
        too_many = n > self.max_reports or n * round.oracle.wire.size > self.disk_bytes
        reads = analysis.reads and not round.oracle.traits.histogram
        return None if reads and too_many else analysis


def _log_change(round: StoredRound, n: int, before: str | None, after: str) -> None:
    """Log what the verdict says now; a near certain attack only after a second look."""
    if before not in (None, after) and after != ONCE:
        level = logging.WARNING if after == NEAR_CERTAIN else logging.INFO
        _log.log(level, "the verdict on the round %s is %s, from %d reports", round.id, after, n)


def verdict_of(result: VerdictResult, labels: Sequence[str], n: int) -> Verdict:
    """Return the verdict of a recovery, alarms and a certificate of n reports.

    `labels` are those of the round.
    """
    estimates, notes = result.recovery.recovered, result.recovery.notes
    top = [] if any(map(is_noise, notes)) else largest(estimates, MAX_TOP).tolist()
    conclusions = result.recovery.conclusions or Conclusions()
    least = result.least_malicious_share
    attack = attack_word(conclusions.attack, proven=least, has_alarm=bool(result.alarms))
    return Verdict(
        reports=n,
        attack=attack,
        attack_probability=conclusions.attack_probability,
        unseen=[UnseenGain(**asdict(each)) for each in conclusions.unseen],
        malicious_share=conclusions.beta,
        least_malicious_share=least,
        raised=[item for item, _ in conclusions.suspects[:MAX_RAISED]],
        sentences=attack_sentences(
            attack,
            [_cut(labels[item]) for item, _ in conclusions.suspects],
            probability=conclusions.attack_probability,
            beta=conclusions.beta,
            proven=least,
            unseen=conclusions.unseen,
            notes=notes,
        ),
        top=[
            TopItem(item=item, label=_cut(labels[item]), estimate=float(estimates[item]))
            for item in top
        ],
    )


def _cut(label: str) -> str:
    """Return a label of at most MAX_TOP_LABEL characters, with an ellipsis if it is longer."""
    return label if len(label) <= MAX_TOP_LABEL else f"{label[: MAX_TOP_LABEL - 1]}…"

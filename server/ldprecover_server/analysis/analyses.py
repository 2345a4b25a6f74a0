"""Looks up the analyses of rounds, and runs them: in the caller's thread, or once in a worker."""

import asyncio
import contextlib
import hashlib
import pickle
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from ldprecover.certificate.results import (
    CertificateResult,
    ImpossibleShareError,
    certificate_result,
)
from ldprecover.errors import ParameterError
from ldprecover.items import find_items
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import (
    AUTO,
    METHODS,
    NEEDS,
    Method,
    Recovery,
    RecoveryRequest,
    chosen_method,
    recover_tally,
)
from ldprecover.reports.tally import Tally
from ldprecover_interface import results
from ldprecover_interface.certificates import CertificateRequest
from ldprecover_interface.verdicts import Verdict
from ldprecover_server.analysis import tasks
from ldprecover_server.analysis.tasks import (
    AlarmsResult,
    Task,
    VerdictResult,
    unpack,
)
from ldprecover_server.analysis.worker_pool import WorkerPool
from ldprecover_server.errors import (
    NoReportsError,
    ReportsGoneError,
    RoundOpenError,
    ShareTooSmallError,
)
from ldprecover_server.limits import Cache
from ldprecover_server.rounds import Rounds, Window
from ldprecover_server.storage import NEAR_CERTAIN, Storage, StoredRound

Source = Literal["counts", "tally", "reports"]
"""The input of a recovery: the counts, the tally in place of the reports, or the stored reports."""

_ALL_NEEDS = frozenset(NEEDS)

_QUICK_ITEMS = 4096
"""The most items with which an analysis that reads no reports takes a few milliseconds."""

_QUESTION_ITEMS = 400
"""Items up to which a question to a certificate takes 7 ms, whatever their number."""

R = TypeVar("R")
T = TypeVar("T")


def source_of(method: Method, oracle: FrequencyOracle, is_complete: bool) -> Source:
    """Return what a method reads in a round, of which all reports may be available.

    Where the tally is their histogram, it takes their place.
    """
    if "reports" in method.needs or (is_complete and "reports" in method.better_with):
        return "tally" if oracle.traits.histogram else "reports"
    return "counts"


def stored_verdict(round: StoredRound) -> Verdict | None:
    """Return the verdict that was stored with a round when it was read."""
    return None if round.verdict is None else Verdict.model_validate_json(round.verdict)


class AnalysisCaller(Protocol):
    """The caller of an analysis."""

    @property
    def key(self) -> str | None:
        """The key that was sent."""

    @property
    def is_known(self) -> bool:
        """Whether the key is valid: such callers have priority and more time."""

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread. Raises BusyError, and any error of the function."""


@dataclass(frozen=True)
class Analysis(Generic[R]):
    """An analysis of a window of rounds that was looked up: `compute` returns its `result`.

    `reads` says whether it reads the reports, and `reader` names what needs all of them. A quick
    one takes a few milliseconds. The tallies of the `history`, windows of earlier rounds, are read
    when it starts. The result of a recommended one may be stored with the round.
    """

    compute: partial[R]
    result: type[R]
    window: Window
    _: KW_ONLY
    reads: bool
    reader: str | None = None
    is_quick: bool = False
    is_recommended: bool = False
    history: Sequence[Window] = ()

    @property
    def round(self) -> StoredRound:
        """The last round of the window."""
        return self.window[-1]

    def require_reports(self, is_complete: bool) -> None:
        """Raise ReportsGoneError unless all reports are stored, or not all are needed."""
        if self.reader is not None and not is_complete:
            raise ReportsGoneError(
                f"{self.reader} reads every report, and the round does not store all of them"
            )

    def key(self, tally: Tally) -> bytes:
        """Return a digest of everything that the result depends on."""
        # Pickles of equal arguments differ if equal strings are one object here and two there.
        # Then both are computed.
        seqs = [stored.seq for stored in self.window]
        versions = [[(stored.seq, stored.n) for stored in window] for window in self.history]
        parts = (self.compute, seqs, tally, self.reads, versions)
        return hashlib.blake2b(pickle.dumps(parts)).digest()


Work = Callable[[Callable[[], None]], Coroutine[Any, Any, bytes]]
"""Computes a result; calls its argument when the computation no longer waits for a worker."""


class _Flight:
    """A computation in progress and the number of callers that wait for it."""

    def __init__(self, work: Work) -> None:
        self.waiting = 0
        self.is_running = False
        self.task = asyncio.ensure_future(work(self._start))

    def _start(self) -> None:
        self.is_running = True


class ResultCache:
    """Packed results by key, the most recently used ones up to `max_bytes`; for one event loop.

    A key must contain everything that the result depends on, so that no entry is ever stale. Errors
    are not cached.
    """

    def __init__(self, max_bytes: int) -> None:
        self._results: Cache[bytes, bytes] = Cache(max_bytes, len)
        self._flights: dict[tuple[bytes, bool], _Flight] = {}

    async def get(self, key: bytes, work: Work, *, keyed: bool) -> bytes:
        """Return the cached result, or that of a computation in progress, or else that of `work`.

        The work is cancelled with its last caller, unless it is running for a caller with a key:
        then it continues, and its result is cached. A caller with a key does not share work that
        was started for callers without one, because they have less time. Raises the errors of
        `work`.
        """
        if (result := self._results.get(key)) is not None:
            return result
        flight = self._flights.get((key, True)) or self._flights.get((key, keyed))
        if flight is None:
            flight = self._flights[key, keyed] = _Flight(work)
            flight.task.add_done_callback(lambda task: self._end((key, keyed), task))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._leave(key, flight)

    def _leave(self, key: bytes, flight: _Flight) -> None:
        """Cancel a computation that nobody waits for, unless a caller with a key may return."""
        if flight.is_running and self._flights.get((key, True)) is flight:
            return
        flight.task.cancel()
        # A caller that arrives before the cancellation ends must not join it.
        self._flights = {
            name: other for name, other in self._flights.items() if other is not flight
        }

    def _end(self, name: tuple[bytes, bool], task: "asyncio.Future[bytes]") -> None:
        if (flight := self._flights.get(name)) is not None and flight.task is task:
            del self._flights[name]
        if task.cancelled() or task.exception() is not None:
            return
        self._results.add(name[0], task.result())


@dataclass(frozen=True)
class _Parts:
    """Reports of several rounds, one after the other.

    Each iteration is new: a transaction ends with the loop that reads it, also after an error.
    """

    rounds: Sequence[Iterable[bytes]]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self.rounds)


@dataclass(eq=False)
class Analyses:
    """Looks up and runs the analyses of rounds that their caller may read.

    A look-up reads what the analysis depends on, and checks the request. Quick analyses then run in
    a thread of the caller's pool. The others run in workers, once for all callers with the same
    request over an unchanged round.
    """

    rounds: Rounds
    storage: Storage
    workers: WorkerPool
    cache: ResultCache

    async def methods(
        self, round: StoredRound, caller: AnalysisCaller
    ) -> list[tuple[Method, Source, str | None]]:
        """Return all recovery methods, what each reads, and the reason if the round forbids it."""
        tally, is_complete = await caller.run(self._evidence, (round,))
        available = frozenset({"counts", "n", "targets"} | ({"reports"} if is_complete else set()))
        no_reports = None if tally.n else "the round has no reports"
        return [
            (
                method,
                source_of(method, round.oracle, is_complete),
                no_reports or method.refusal(round.oracle, available),
            )
            for method in METHODS.values()
        ]

    async def recover(
        self, window: Window, request: results.RecoveryQuery, caller: AnalysisCaller
    ) -> Recovery:
        """Return a recovery.

        A method that works better with reports reads them if all are stored. Raises NoReportsError,
        ReportsGoneError, ParameterError, for rounds of the history RoundNotFoundError,
        UnauthorizedError and ForbiddenError, and what `WorkerPool.run` raises.
        """
        return await self.run(window, caller, partial(self._recovery, request, caller.key))

    async def alarms(
        self, round: StoredRound, rate: float, canaries: Sequence[str], caller: AnalysisCaller
    ) -> AlarmsResult:
        """Return the alarms of a round; `canaries` are labels of items that nobody holds.

        Alarms that read reports are left out unless all are stored. Raises NoReportsError,
        ParameterError and what `WorkerPool.run` raises.
        """
        return await self.run((round,), caller, partial(self._alarms, rate, canaries))

    async def certify(
        self, window: Window, request: CertificateRequest, caller: AnalysisCaller
    ) -> CertificateResult:
        """Return what a window of rounds proves.

        Raises NoReportsError, ShareTooSmallError, ParameterError, for a request from reports
        RoundOpenError and ReportsGoneError, and what `WorkerPool.run` raises.
        """
        result = await self.run(window, caller, partial(self._certificate, request))
        if result.lower is None:
            error = ImpossibleShareError(result)
            share = error.least_malicious_share
            raise ShareTooSmallError(str(error), least_malicious_share=share)
        return result

    def verdict(self, round: StoredRound) -> tuple[Analysis[VerdictResult], int]:
        """Return the analysis for a round's verdict, and the number of reports.

        Raises ReportsGoneError.
        """
        tally, is_complete = self._evidence((round,))
        analysis = self.look_up_verdict((round,), is_complete)
        analysis.require_reports(is_complete)
        return analysis, tally.n

    def look_up_verdict(self, window: Window, is_complete: bool) -> Analysis[VerdictResult]:
        """Return the analysis for the verdict of a window."""
        recovery = self._recovery_by(RecoveryRequest(), window, is_complete)
        return Analysis(
            compute=partial(tasks.verdict, recovery_reads=recovery.reads),
            result=VerdictResult,
            window=window,
            reads=is_complete,
            reader=recovery.reader,
        )

    def prepare(self, analysis: Analysis[R]) -> tuple[Task, Iterable[bytes] | None]:
        """Return the task, and the packed reports of the same moment if it reads them.

        Reading the reports raises ReportsGoneError if they are deleted meanwhile. A worker does not
        read them where the tally is their histogram.
        """
        if not analysis.reads:
            return self._task(analysis, *self._evidence(analysis.window)), None
        oracle, segments = analysis.round.oracle, self.storage.segments
        tally, parts, stored = Tally.empty(oracle.summary_size), [], 0
        for each in analysis.window:
            counted, reports = segments.tally_and_reports(each.seq, oracle.summary_size)
            tally, stored = tally + counted, stored + reports.n
            parts.append(reports)
        is_complete = stored == tally.n or oracle.traits.histogram
        return self._task(analysis, tally, is_complete), _Parts(parts)

    def _task(self, analysis: Analysis[R], tally: Tally, is_complete: bool) -> Task:
        analysis.require_reports(is_complete)
        reads = analysis.reads and is_complete
        return Task(self._computation(analysis), analysis.round.oracle, tally, reads)

    def _computation(self, analysis: Analysis[R]) -> partial[R]:
        """Return what the analysis computes, with the tallies of its history."""
        if not analysis.history:
            return analysis.compute
        history = [(each[-1].oracle, self.rounds.tally(*each)) for each in analysis.history]
        return partial(analysis.compute, history=history)

    async def run(
        self,
        window: Window,
        caller: AnalysisCaller,
        look_up: Callable[[Window, bool], Analysis[R]],
    ) -> R:
        """Return the result of an analysis, which `look_up` makes of the window.

        The second argument is whether all reports can be read. Raises NoReportsError,
        ReportsGoneError, and what `look_up` and `WorkerPool.run` raise.
        """
        round = window[-1]

        def begin() -> tuple[Analysis[R], bytes, R | None]:
            # In one call: between two of them, hundreds of callers would hold their tallies.
            tally, is_complete = self._evidence(window)
            if not tally.n:
                raise NoReportsError(f"the round {round.name} has no reports")
            analysis = look_up(window, is_complete)
            if analysis.is_quick:
                return analysis, b"", self._computation(analysis)(round.oracle, tally, None)
            analysis.require_reports(is_complete)
            return analysis, analysis.key(tally), None

        analysis, key, computed = await caller.run(begin)
        if computed is not None:
            return computed
        keyed = caller.is_known

        async def work(on_start: Callable[[], None]) -> bytes:
            if analysis.is_recommended:
                stored = await caller.run(self._stored, round)
                if stored is not None:
                    return stored
            return await self.workers.run(
                partial(self.prepare, analysis),
                keyed=keyed,
                group=(round.seq, caller.key if keyed else None),
                on_start=on_start,
            )

        return unpack(analysis.result, await self.cache.get(key, work, keyed=keyed))

    def _stored(self, round: StoredRound) -> bytes | None:
        """Return the packed recommended recovery that is stored with the round, if it is."""
        packed = self.storage.verdicts.recovery(round.seq)
        with contextlib.suppress(msgspec.DecodeError):  # another version packed it
            if packed is not None:
                unpack(Recovery, packed)
                return packed
        return None

    def _evidence(self, window: Window) -> tuple[Tally, bool]:
        """Return a window's tally, and whether all of its reports can be read.

        That is if they are stored, or if the tally is their histogram. Raises RoundNotFoundError.
        """
        are_stored = all(each.retention == "forever" for each in window)
        return self.rounds.tally(*window), are_stored or window[-1].oracle.traits.histogram

    def _recovery(
        self,
        query: results.RecoveryQuery,
        key: str | None,
        window: Window,
        is_complete: bool,
    ) -> Analysis[Recovery]:
        items = self.rounds.items(window[-1]) if query.targets or query.canaries else ()
        request = RecoveryRequest(
            query.method,
            eta=query.eta,
            targets=find_items(query.targets, items),
            malicious_model=query.malicious_model,
            support=query.support,
            options=query.options,
            canaries=find_items(query.canaries, items, "canaries"),
        )
        history = self._history(window, query, key)
        return self._recovery_by(request, window, is_complete, history)

    def _recovery_by(
        self,
        request: RecoveryRequest,
        window: Window,
        is_complete: bool,
        history: Sequence[Window] = (),
    ) -> Analysis[Recovery]:
        method, oracle = METHODS[request.method], window[-1].oracle
        if request.method == AUTO:
            method, _ = chosen_method(oracle, _ALL_NEEDS)
        source = source_of(method, oracle, is_complete)
        reads = source != "counts" and method.refusal(oracle, _ALL_NEEDS) is None
        is_quick = not (reads or method.long) and oracle.domain_size <= _QUICK_ITEMS
        is_plain = not (request.assumptions or history or window[1:])
        return Analysis(
            compute=partial(recover_tally, request=request),
            result=Recovery,
            window=window,
            reads=reads,
            reader=method.name if reads else None,
            is_quick=is_quick,
            is_recommended=request.method == AUTO and is_plain,
            history=history,
        )

    def _history(
        self, window: Window, query: results.RecoveryQuery, key: str | None
    ) -> list[Window]:
        """Return what the caller names as history, without duplicates."""
        round, history, taken = window[-1], list[Window](), set[int]()
        for identifier in query.history:
            if identifier == results.WINDOW_BEFORE:
                before = self.rounds.window_before(round, query.window, key)
                if not sum(each.n for each in before):
                    raise ParameterError("history: no round with reports is before the window")
                for each in before:
                    verdict = stored_verdict(each)
                    if verdict and verdict.attack == NEAR_CERTAIN:
                        raise ParameterError(
                            f"history: an attack on {each.name} is near certain; name clean rounds"
                        )
                history.append(tuple(each for each in before if each.seq not in taken))
                taken.update(each.seq for each in before)
                continue
            stored = self.rounds.readable(identifier, key)
            if stored.seq in (each.seq for each in window):
                raise ParameterError("history: a round cannot be its own history")
            if stored.state != "closed":
                raise ParameterError(f"history: the round {stored.name} is still open")
            if not stored.n:
                raise ParameterError(f"history: the round {stored.name} has no reports")
            if not self.storage.rounds.have_same_items(round.seq, stored.seq):
                raise ParameterError(f"history: the round {stored.name} has other items")
            if stored.question != round.question:
                raise ParameterError(f"history: the round {stored.name} asks another question")
            if stored.practice != round.practice:
                raise ParameterError(f"history: the round {stored.name} differs in practice")
            if stored.seq not in taken:
                history.append((stored,))
                taken.add(stored.seq)
        return [each for each in history if each]

    def _alarms(
        self, rate: float, canaries: Sequence[str], window: Window, is_complete: bool
    ) -> Analysis[AlarmsResult]:
        items = self.rounds.items(window[-1]) if canaries else ()
        indices = tuple(find_items(canaries, items, "canary"))
        return Analysis(
            compute=partial(tasks.alarms, rate=rate, canaries=indices),
            result=AlarmsResult,
            window=window,
            reads=is_complete,
        )

    def _certificate(
        self, request: CertificateRequest, window: Window, is_complete: bool
    ) -> Analysis[CertificateResult]:
        round, seed, reader = window[-1], None, None
        has_tickets = all(each.access == "ticket" for each in window)
        if request.malicious_tickets is not None and not has_tickets:
            raise ParameterError(
                "malicious_tickets: the round takes reports without tickets; give a share"
            )
        if request.reports:
            # The earlier rounds of a window were closed before this one was opened, so its seed
            # was drawn after the last report of each.
            seed, reader = round.seed, "the certificate"
            if seed is None:
                raise RoundOpenError("a certificate from reports is of a closed round")
            if find_spec("scipy") is None:
                raise ParameterError(
                    "reports: this server certifies from counts only; with scipy, the extra "
                    "certify, it reads the reports too"
                )
        arguments = request.core_arguments(self.rounds.items(round) if request.questions else ())
        # From counts it is quick if it takes at most as long as one question over _QUICK_ITEMS
        # items, 0.1 seconds.
        work = max(1, len(request.questions)) * max(round.oracle.domain_size, _QUESTION_ITEMS)
        is_quick = not request.reports and work <= _QUICK_ITEMS
        return Analysis(
            compute=partial(certificate_result, **arguments, seed=seed),
            result=CertificateResult,
            window=window,
            reads=request.reports,
            reader=reader,
            is_quick=is_quick,
        )

"""Runs analyses: in the caller's thread, or in workers behind a cache of results."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ldprecover.recovery import METHODS, Method, RecoveryRequest
from ldprecover_interface.certificates import CertificateRequest, ImpossibleShareError
from ldprecover_interface.questions import AnyQuestion, CertificateResult
from ldprecover_server.analysis.cache import ResultCache
from ldprecover_server.analysis.kinds import (
    AlarmsAnalysis,
    Analysis,
    CertificateAnalysis,
    RecoveryAnalysis,
    Source,
    Targets,
    source_of,
)
from ldprecover_server.analysis.round_reader import RoundReader
from ldprecover_server.analysis.tasks import AlarmsResult, RecoverResult
from ldprecover_server.analysis.worker_pool import WorkerPool
from ldprecover_server.errors import ShareTooSmallError
from ldprecover_server.rounds import RoundInfo

R = TypeVar("R")
T = TypeVar("T")


class Caller(Protocol):
    """The caller of an analysis."""

    @property
    def key(self) -> str | None:
        """The key that was sent."""

    @property
    def is_known(self) -> bool:
        """Whether the key is valid: such callers have priority and more time."""

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread. Raises BusyError, and any error of the function."""


class Analyses:
    """Runs the analyses of rounds that their caller may read.

    Quick ones run in a thread of the caller's pool. The others run in workers, once for all callers
    with the same request over an unchanged round.
    """

    def __init__(self, reader: RoundReader, workers: WorkerPool, cache: ResultCache) -> None:
        self._reader = reader
        self._workers = workers
        self._cache = cache

    async def methods(
        self, round: RoundInfo, caller: Caller
    ) -> list[tuple[Method, Source, str | None]]:
        """Return all recovery methods, what each reads, and the reason if the round forbids it."""

        def check() -> list[tuple[Method, Source, str | None]]:
            tally, is_complete = self._reader.evidence(round)
            available = frozenset(
                {"counts", "n", "targets"} | ({"reports"} if is_complete else set())
            )

            def reason(method: Method) -> str | None:
                if not tally.n:
                    return "the round has no reports"
                return method.refusal(round.oracle, available)

            return [
                (each, source_of(each, round.oracle, is_complete), reason(each))
                for each in METHODS.values()
            ]

        return await caller.run(check)

    async def recover(
        self,
        round: RoundInfo,
        request: RecoveryRequest,
        targets: Targets,
        canaries: Sequence[str | int],
        history: Sequence[str],
        caller: Caller,
    ) -> RecoverResult:
        """Return a recovery; targets, canaries and history replace those of the request.

        Raises what `RecoveryAnalysis.look_up` and `WorkerPool.run` raise, and ParameterError.
        """
        analysis = RecoveryAnalysis(self._reader, round, request, targets, canaries, history)
        return await self._run(analysis, caller)

    async def alarms(
        self, round: RoundInfo, rate: float, canaries: Sequence[str], caller: Caller
    ) -> AlarmsResult:
        """Return the alarms of a round; `canaries` are labels of items that nobody holds.

        Raises NoReportsError, ParameterError and what `WorkerPool.run` raises.
        """
        return await self._run(AlarmsAnalysis(self._reader, round, rate, canaries), caller)

    async def certify(
        self, round: RoundInfo, request: CertificateRequest, caller: Caller
    ) -> tuple[CertificateResult, tuple[AnyQuestion, ...]]:
        """Return what a round proves, and the questions about its items.

        Raises NoReportsError, ShareTooSmallError, ParameterError, for a request from reports
        RoundOpenError and ReportsGoneError, and what `WorkerPool.run` raises.
        """
        analysis = CertificateAnalysis(self._reader, round, request)
        result = await self._run(analysis, caller)
        if not result.is_possible:
            error = ImpossibleShareError(result)
            raise ShareTooSmallError(str(error), error.least_malicious_share)
        return result, analysis.questions

    async def _run(self, analysis: Analysis[R], caller: Caller) -> R:
        def begin() -> tuple[bytes, R | None]:
            # In one call: between two of them, hundreds of callers would hold their tallies.
            analysis.look_up(caller.key)
            return (b"", analysis.compute()) if analysis.is_quick else (analysis.key(), None)

        key, computed = await caller.run(begin)
        if computed is not None:
            return computed
        keyed = caller.is_known

        async def work(on_start: Callable[[], None]) -> bytes:
            if (stored := await caller.run(analysis.stored)) is not None:
                return stored
            return await self._workers.run(
                analysis.prepare,
                keyed=keyed,
                group=(analysis.round.seq, caller.key if keyed else None),
                on_start=on_start,
            )

        packed = await self._cache.get(key, work, keyed=keyed)
        return analysis.unpack(packed)

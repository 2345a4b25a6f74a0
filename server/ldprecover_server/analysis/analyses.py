"""What is made of a round's reports: recoveries, alarms and suspects."""

import hashlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ContractError, ParameterError
from ldprecover.evidence.suspects import Suspects
from ldprecover.items import find_items
from ldprecover.plugins import distribution_of, named
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import METHODS, NEEDS, Method, RecoveryRequest
from ldprecover_server.analysis.cache import ResultCache
from ldprecover_server.analysis.tasks import (
    AlarmsResult,
    AlarmsTask,
    RecoverResult,
    RecoverTask,
    SuspectsTask,
    unpack_alarms,
    unpack_recovery,
    unpack_suspects,
)
from ldprecover_server.analysis.worker_pool import OnProgress, Prepare, WorkerPool
from ldprecover_server.errors import AnalysisFailedError, NoReportsError, ReportsGoneError
from ldprecover_server.results import Results
from ldprecover_server.rounds import KnownRound, Rounds
from ldprecover_server.storage import Store, StoredRound

INFER = "infer"
"""The targets that the earlier rounds of the series give."""

Targets = Sequence[str | int] | Literal["infer"]

_EARLIER = 50  # rounds of a series that are looked at, the last ones
MAX_HISTORY = 50
"""The most rounds that a recovery takes as history."""

_EVERYTHING = frozenset(NEEDS)
_SMALL = 4096  # items up to which what reads no reports takes some milliseconds

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Caller(Protocol):
    """Who asks: with which key, whether it is one, and a thread for what has to be looked up."""

    @property
    def key(self) -> str | None:
        """The key that came, or None."""

    @property
    def is_known(self) -> bool:
        """Whether the key is one: such callers come first and have more time."""

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread. Raises BusyError, and what it raises."""


@dataclass(frozen=True)
class Wanted:
    """The recovery that a caller wants: a request, and what it names by label or identifier.

    `targets` and `history` replace those of the request. `history` names closed rounds over the
    same items, which the caller may read and knows to be clean; they are not looked up for a method
    that does not use them.
    """

    request: RecoveryRequest
    targets: Targets
    history: Sequence[str]

    @property
    def method(self) -> Method:
        return METHODS[self.request.method]

    @property
    def uses_history(self) -> bool:
        return "history" in self.method.uses


@dataclass(frozen=True)
class _Known:
    """What the store says of a recovery: the request with the targets by index, the rounds that
    give the targets, and the clean ones.
    """

    round: KnownRound
    tally: Tally
    request: RecoveryRequest
    earlier: list[StoredRound] | None
    clean: list[StoredRound]
    reads: bool

    @property
    def key(self) -> list[object]:
        """What an answer depends on beside the round's own reports."""
        request = self.request
        support = None if request.support is None else np.asarray(request.support).tobytes()
        return [
            request.method,
            request.eta,
            request.targets,
            request.malicious_model,
            support,
            sorted(request.options.items()),
            _named(self.earlier),
            _named(self.clean),
        ]


class Analyses:
    """Recoveries, alarms and suspects of the rounds of a server.

    What takes milliseconds is done in a few threads; what reads every report, and what takes
    longer, in child processes, once for all who ask the same of an unchanged round.
    """

    def __init__(
        self,
        rounds: Rounds,
        results: Results,
        store: Store,
        children: WorkerPool,
        answers: ResultCache,
    ) -> None:
        self._rounds = rounds
        self._results = results
        self._store = store
        self._children = children
        self._answers = answers

    async def methods(
        self, identifier: str, caller: Caller
    ) -> tuple[KnownRound, list[tuple[Method, str | None]]]:
        """Return every recovery method, with the reason why this round cannot give it, if there is
        one.
        """

        def look() -> tuple[KnownRound, list[tuple[Method, str | None]]]:
            round = self._results.readable(identifier, caller.key)
            tally, complete = self._evidence(round)
            known = frozenset({"counts", "n", "targets"} | ({"reports"} if complete else set()))
            found = []
            for method in METHODS.values():
                reason = method.refusal(round.oracle, known)
                found.append((method, reason if tally.n else "the round has no reports"))
            return round, found

        return await caller.run(look)

    async def recover(
        self, identifier: str, wanted: Wanted, caller: Caller, on_progress: OnProgress | None = None
    ) -> tuple[KnownRound, RecoverResult]:
        """Recover a round's frequencies.

        A method that can do without the reports and uses them where they are there reads them where
        all are kept.

        Raises RoundNotFoundError, UnauthorizedError and ForbiddenError, also for the history of a
        method that uses it; NoReportsError, ParameterError for what does not fit, ContractError for
        a method that fails, ReportsGoneError for one that needs reports which are not kept, and
        what `WorkerPool.run` raises.
        """
        known = await caller.run(self._look_up, identifier, wanted, caller.key)
        round = known.round
        # A plugin's method may take as long as it likes, or end its process: that is never this
        # one.
        plugin = distribution_of("ldprecover.methods", wanted.method.name) is not None
        long = known.reads or plugin or wanted.method.long
        if not long and round.oracle.domain_size <= _SMALL:
            try:
                return round, await caller.run(
                    lambda: self._asked(wanted, known, known.tally).answer(None)
                )
            except ContractError:
                _log.exception("a recovery failed")
                raise
        name = partial(
            _name, "recover", round, known.tally, [known.reads, bool(wanted.history), *known.key]
        )
        prepare = partial(self._prepared, wanted, known)
        try:
            return round, unpack_recovery(await self._answer(name, prepare, caller, on_progress))
        except AnalysisFailedError as error:
            who = named("method", wanted.method.name)
            if not plugin or who in str(error):
                raise
            raise AnalysisFailedError(f"{who}: {error}") from error

    def _look_up(self, identifier: str, wanted: Wanted, key: str | None) -> _Known:
        """Return what a recovery begins with. Raises what `recover` does before anything is
        recovered.
        """
        round = self._results.readable(identifier, key)
        tally, complete = self._evidence(round)
        targets: Sequence[int] = ()
        earlier = None
        if wanted.targets == INFER:
            earlier = self._earlier(round, key)
            if not tally.n:
                raise NoReportsError("the round has no reports to compare")
        else:
            targets = find_items(wanted.targets, round.parameters.items)
        if not tally.n:
            raise NoReportsError("the round has no reports to recover from")
        method = wanted.method
        reads = method.refusal(round.oracle, _EVERYTHING) is None and _reads(method, complete)
        if reads and not complete:
            raise _gone(method.name)
        clean = self._clean(round, wanted.history, key) if wanted.uses_history else []
        request = replace(wanted.request, targets=targets)
        return _Known(round, tally, request, earlier, clean, reads)

    def _asked(self, wanted: Wanted, known: _Known, tally: Tally) -> RecoverTask:
        round = known.round
        return RecoverTask(
            oracle=round.oracle,
            tally=tally,
            request=replace(known.request, history=self._pooled(round, known.clean)),
            earlier=None if known.earlier is None else self._pooled(round, known.earlier),
            history_unused=bool(wanted.history) and not wanted.uses_history,
            reads=known.reads,
            canaries=round.parameters.canaries,
        )

    def _prepared(
        self, wanted: Wanted, known: _Known
    ) -> tuple[RecoverTask, Iterable[bytes] | None]:
        if not known.reads:
            return self._asked(wanted, known, known.tally), None
        now, complete, pieces = self._snapshot(known.round)
        if not complete:
            raise _gone(wanted.method.name)
        return self._asked(wanted, known, now), pieces

    async def alarms(
        self, identifier: str, rate: float, caller: Caller, on_progress: OnProgress | None = None
    ) -> tuple[KnownRound, AlarmsResult]:
        """Return the alarms of a round: those that read reports where all are kept.

        Raises NoReportsError, ParameterError, and what `WorkerPool.run` raises.
        """

        def look() -> tuple[KnownRound, Tally, bool]:
            round = self._results.readable(identifier, caller.key)
            tally, complete = self._evidence(round)
            if not tally.n:
                raise NoReportsError("the round has no reports to test")
            return round, tally, complete

        round, tally, complete = await caller.run(look)

        def prepare() -> tuple[AlarmsTask, Iterable[bytes]]:
            now, complete, pieces = self._snapshot(round)
            return AlarmsTask(round.oracle, now, rate, complete, round.parameters.canaries), pieces

        name = partial(_name, "alarms", round, tally, [complete, rate])
        return round, unpack_alarms(await self._answer(name, prepare, caller, on_progress))

    async def suspects(
        self,
        identifier: str,
        rate: float,
        drift: float,
        caller: Caller,
        on_progress: OnProgress | None = None,
    ) -> tuple[KnownRound, Suspects, list[StoredRound]]:
        """Return what rose in a round since the earlier closed rounds of its series, and those
        rounds.

        Raises NoReportsError, ParameterError without such a round, and what `WorkerPool.run`
        raises.
        """

        def look() -> tuple[KnownRound, Tally, list[StoredRound]]:
            round = self._results.readable(identifier, caller.key)
            tally, _ = self._evidence(round)
            earlier = self._earlier(round, caller.key)
            if not tally.n:
                raise NoReportsError("the round has no reports to compare")
            return round, tally, earlier

        round, tally, earlier = await caller.run(look)

        def asked() -> SuspectsTask:
            return SuspectsTask(round.oracle, tally, self._pooled(round, earlier), rate, drift)

        if round.oracle.domain_size <= _SMALL:
            return round, await caller.run(lambda: asked().answer(None)), earlier
        name = partial(_name, "suspects", round, tally, [_named(earlier), rate, drift])
        packed = await self._answer(name, lambda: (asked(), None), caller, on_progress)
        return round, unpack_suspects(packed), earlier

    async def _answer(
        self,
        name: Callable[[], bytes],
        prepare: Prepare,
        caller: Caller,
        on_progress: OnProgress | None,
    ) -> bytes:
        def work(tell: OnProgress) -> Coroutine[Any, Any, bytes]:
            return self._children.run(prepare, keyed=caller.is_known, on_progress=tell)

        named = await caller.run(name)
        return await self._answers.get(named, work, keyed=caller.is_known, on_progress=on_progress)

    def _evidence(self, round: KnownRound) -> tuple[Tally, bool]:
        """Return a round's tally, and whether every report that was counted is still kept."""
        return self._store.evidence(round.seq, round.oracle.summary_size)

    def _snapshot(self, round: KnownRound) -> tuple[Tally, bool, Iterable[bytes]]:
        """Return the same, and the packed reports of the same moment; reading them raises
        ReportsGoneError.
        """
        tally, stored = self._store.tally_and_reports(round.seq, round.oracle.summary_size)
        return tally, tally.n > 0 and stored.n == tally.n, stored

    def _earlier(self, round: KnownRound, key: str | None) -> list[StoredRound]:
        before = self._store.earlier(round.seq)
        found = [stored for stored in before if stored.state == "closed" and stored.n][:_EARLIER]
        if not found:
            series = round.series
            if series is None:
                raise ParameterError(
                    "the round belongs to no series, so there is no round to compare it with"
                )
            if not before:
                raise ParameterError(
                    f"the series {series} has no round before this one to compare it with"
                )
            raise ParameterError(
                f"of the rounds before this one in the series {series} none is closed and has "
                "reports"
            )
        return [stored for stored in found if self._results.readable(stored.id, key)]

    def _clean(
        self, round: KnownRound, history: Sequence[str], key: str | None
    ) -> list[StoredRound]:
        """Return the rounds that the caller names as history, each once."""
        if len(history) > MAX_HISTORY:
            raise ParameterError(
                f"history must name at most {MAX_HISTORY} rounds, not {len(history)}"
            )
        found: dict[int, StoredRound] = {}
        for identifier in history:
            stored, known = self._results.look_up(identifier, key)
            if known.seq == round.seq:
                raise ParameterError("history: a round cannot be its own history")
            if stored.state != "closed":
                raise ParameterError(f"history: the round {stored.name} is open still")
            if not stored.n:
                raise ParameterError(f"history: the round {stored.name} has no reports")
            if known.parameters.items != round.parameters.items:
                raise ParameterError(f"history: the round {stored.name} has other items")
            found[known.seq] = stored
        return list(found.values())

    def _pooled(
        self, round: KnownRound, earlier: Sequence[StoredRound]
    ) -> tuple[tuple[FrequencyOracle, Tally], ...]:
        found = []
        for stored in earlier:
            other = self._rounds.known(stored)
            if other.parameters.items != round.parameters.items:  # two were opened at once
                raise ParameterError(f"the round {stored.name} of the series has other items")
            found.append((other.oracle, self._store.tally(other.seq, other.oracle.summary_size)))
        return tuple(found)


def _reads(method: Method, complete: bool) -> bool:
    """Return whether a method is given a round's reports: where it needs them, or they are there
    and make it better.
    """
    return "reports" in method.needs or (complete and "reports" in method.better_with)


def _gone(method: str) -> ReportsGoneError:
    return ReportsGoneError(f"{method} reads every report, and the round has not kept them all")


def _named(earlier: Sequence[StoredRound] | None) -> list[tuple[int, int]] | None:
    """Return what the tallies of closed rounds are known by."""
    return None if earlier is None else [(stored.seq, stored.n) for stored in earlier]


def _name(kind: str, round: KnownRound, tally: Tally, wanted: Sequence[object]) -> bytes:
    """Return all that an answer depends on, in few bytes."""
    counted = [round.seq, tally.n, hashlib.blake2b(tally.to_bytes()).digest()]
    return hashlib.blake2b(repr([kind, *counted, *wanted]).encode()).digest()

"""The kinds of analyses, each as one class: recovery, alarms, certificates, verdicts."""

import contextlib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from importlib.util import find_spec
from typing import ClassVar, Generic, Literal, TypeVar

import msgspec
import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.evidence.alarms import DEFAULT_RATE
from ldprecover.items import find_items
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import AUTO, METHODS, NEEDS, Method, RecoveryRequest, chosen_method
from ldprecover_interface.certificates import CertificateRequest
from ldprecover_interface.questions import AnyQuestion, CertificateResult
from ldprecover_server.analysis.round_reader import RoundReader
from ldprecover_server.analysis.tasks import (
    AlarmsResult,
    AlarmsTask,
    CertificateTask,
    RecoverResult,
    RecoverTask,
    Task,
    VerdictResult,
    VerdictTask,
    unpack,
)
from ldprecover_server.errors import NoReportsError, ReportsGoneError, RoundOpenError
from ldprecover_server.rounds import RoundInfo
from ldprecover_server.storage import StoredRound

INFER = "infer"
"""Targets that are inferred from the rounds of the history."""

Targets = Sequence[str | int] | Literal["infer"]

Source = Literal["counts", "tally", "reports"]
"""The input of a recovery: the counts, the tally in place of the reports, or the stored reports."""

_ALL_NEEDS = frozenset(NEEDS)

_QUICK_ITEMS = 4096
"""The most items with which an analysis that reads no reports takes a few milliseconds."""

_QUESTION_ITEMS = 400
"""Items up to which a question to a certificate takes 7 ms, whatever their number."""

R = TypeVar("R")


def source_of(method: Method, oracle: FrequencyOracle, is_complete: bool) -> Source:
    """Return what a method reads in a round, of which all reports may be available.

    Where the tally is their histogram, it takes their place.
    """
    if "reports" in method.needs or (is_complete and "reports" in method.better_with):
        return "tally" if oracle.traits.histogram else "reports"
    return "counts"


class Analysis(ABC, Generic[R]):
    """One analysis of one round.

    `look_up` comes first: it reads the tally and checks the request. A quick analysis is then
    computed in the caller's thread. Any other has a `key` in the cache of results, a worker gets
    the task of `prepare`, and `unpack` decodes its result. All methods may block.
    """

    kind: ClassVar[str]
    result: type[R]
    reads = False
    """Whether the analysis reads the reports."""
    is_quick = False
    """Whether it takes a few milliseconds."""

    def __init__(self, reader: RoundReader, round: RoundInfo) -> None:
        self.reader = reader
        self.round = round

    def look_up(self, key: str | None) -> None:
        """Read what the analysis depends on, with the caller's key.

        Raises NoReportsError, ReportsGoneError, ParameterError for a request that does not fit the
        round, and for other rounds RoundNotFoundError, UnauthorizedError and ForbiddenError.
        """
        self.tally, self.is_complete = self.reader.evidence(self.round)
        self._check(key)

    def key(self) -> bytes:
        """Return a digest of everything that the result depends on, and release the tally.

        Thousands of callers may wait for one result.
        """
        tally = [self.round.seq, self.tally.n, hashlib.blake2b(self.tally.to_bytes()).digest()]
        del self.tally
        return hashlib.blake2b(repr([self.kind, *tally, *self._arguments()]).encode()).digest()

    def prepare(self) -> tuple[Task, Iterable[bytes] | None]:
        """Return the task, and the packed reports of the same moment if it reads them."""
        if not self.reads:
            return self._task(*self.reader.evidence(self.round)), None
        tally, is_complete, reports, _ = self.reader.snapshot(self.round)
        return self._task(tally, is_complete), reports

    def compute(self) -> R:
        """Return the result of a quick analysis. Raises ParameterError."""
        result: R = self._task(self.tally, self.is_complete).run(None)  # type: ignore[assignment]
        return result

    def stored(self) -> bytes | None:
        """Return the packed result that is stored with the round, if there is one."""
        return None

    def unpack(self, packed: bytes) -> R:
        """Return the result of the task."""
        return unpack(self.result, packed)

    @abstractmethod
    def _check(self, key: str | None) -> None:
        """Check the request and look other rounds up."""

    @abstractmethod
    def _arguments(self) -> list[object]:
        """Return what the result depends on apart from the round's own reports."""

    @abstractmethod
    def _task(self, tally: Tally, is_complete: bool) -> Task:
        """Return the task over this tally; `is_complete` says whether all reports are stored."""

    def _require_reports(self, purpose: str) -> None:
        if not self.tally.n:
            raise NoReportsError(f"the round has no reports to {purpose}")


class RecoveryAnalysis(Analysis[RecoverResult]):
    """A recovery; targets and canaries are given by label or index, the history by identifier.

    `history` names closed rounds over the same items, which the caller may read and knows to be
    clean, whatever the method. A method that works better with reports reads them if all are
    stored.
    """

    kind = "recover"
    result = RecoverResult

    def __init__(
        self,
        reader: RoundReader,
        round: RoundInfo,
        request: RecoveryRequest,
        targets: Targets,
        canaries: Sequence[str | int],
        history: Sequence[str],
    ) -> None:
        super().__init__(reader, round)
        self.request = request
        self.method = METHODS[request.method]
        self._targets = targets
        self._canaries = canaries
        self._history_names = history
        self._history: list[StoredRound] = []

    def _check(self, key: str | None) -> None:
        named: Sequence[str | int] = ()
        if self._targets != INFER:
            named = self._targets
        elif not self._history_names:
            raise ParameterError("history: targets are inferred from earlier rounds, so name some")
        items = self.reader.items(self.round) if named or self._canaries else ()
        targets, canaries = find_items(named, items), find_items(self._canaries, items, "canaries")
        self._require_reports("recover from")
        self.request = replace(self.request, targets=targets, canaries=canaries)
        oracle = self.round.oracle
        if self.request.method == AUTO:
            self.method, _ = chosen_method(oracle, _ALL_NEEDS)
        method = self.method
        self.reads = method.refusal(oracle, _ALL_NEEDS) is None and (
            source_of(method, oracle, self.is_complete) != "counts"
        )
        if self.reads and not self.is_complete:
            raise self._incomplete()
        self._history = self.reader.history(self.round, self._history_names, key)
        is_long = self.reads or method.long
        self.is_quick = not is_long and oracle.domain_size <= _QUICK_ITEMS

    def stored(self) -> bytes | None:
        request = self.request
        is_recommended = request.method == AUTO and not request.assumptions
        if not is_recommended or self._history:
            return None
        packed = self.reader.stored_recovery(self.round)
        with contextlib.suppress(msgspec.DecodeError):  # another version packed it
            if packed is not None:
                self.unpack(packed)
                return packed
        return None

    def _arguments(self) -> list[object]:
        request = {
            field.name: getattr(self.request, field.name) for field in fields(RecoveryRequest)
        } | {"options": sorted(self.request.options.items())}
        if self.request.support is not None:
            request["support"] = np.asarray(self.request.support).tobytes()
        return [
            self.reads,
            *request.values(),
            self._targets == INFER,
            _versions(self._history),
        ]

    def _task(self, tally: Tally, is_complete: bool) -> RecoverTask:
        if self.reads and not is_complete:
            raise self._incomplete()
        return RecoverTask(
            oracle=self.round.oracle,
            tally=tally,
            request=replace(self.request, history=self.reader.tallies(self._history)),
            infers_targets=self._targets == INFER,
            reads=self.reads,
        )

    def _incomplete(self) -> ReportsGoneError:
        return ReportsGoneError(
            f"{self.method.name} reads every report, and the round does not store all of them"
        )


class AlarmsAnalysis(Analysis[AlarmsResult]):
    """The alarms of a round; alarms that read reports are left out unless all are stored."""

    kind = "alarms"
    result = AlarmsResult
    reads = True

    def __init__(
        self, reader: RoundReader, round: RoundInfo, rate: float, canaries: Sequence[str]
    ) -> None:
        super().__init__(reader, round)
        self._rate = rate
        self._labels = canaries

    def _check(self, key: str | None) -> None:
        self._require_reports("test")
        items = self.reader.items(self.round) if self._labels else ()
        self._canaries = tuple(find_items(self._labels, items, "canary"))

    def _arguments(self) -> list[object]:
        return [self.is_complete, self._rate, self._canaries]

    def _task(self, tally: Tally, is_complete: bool) -> AlarmsTask:
        return AlarmsTask(self.round.oracle, tally, self._rate, is_complete, self._canaries)


class CertificateAnalysis(Analysis[CertificateResult]):
    """The certificate of a round; `questions` are those of the request, about the round's items.

    It reads the reports if the request says so. From counts it is quick if it takes at most as long
    as one question over _QUICK_ITEMS items, 0.1 seconds.
    """

    kind = "certificate"
    result = CertificateResult

    def __init__(self, reader: RoundReader, round: RoundInfo, request: CertificateRequest) -> None:
        super().__init__(reader, round)
        self._request = request
        self.reads = request.reports
        work = max(1, len(request.questions)) * max(round.oracle.domain_size, _QUESTION_ITEMS)
        self.is_quick = not self.reads and work <= _QUICK_ITEMS
        self._seed: str | None = None
        self.questions: tuple[AnyQuestion, ...] = ()

    def look_up(self, key: str | None) -> None:
        self.tally, self.is_complete, _ = self._read()
        self._check(key)

    def prepare(self) -> tuple[Task, Iterable[bytes] | None]:
        tally, is_complete, reports = self._read()
        return self._task(tally, is_complete), reports

    def _read(self) -> tuple[Tally, bool, Iterable[bytes] | None]:
        """Return tally, completeness and reports, all of one moment."""
        if not self.reads:
            return self.reader.evidence(self.round)[0], False, None
        tally, is_complete, reports, stored = self.reader.snapshot(self.round)
        self._seed = stored.seed
        return tally, is_complete, reports

    def _check(self, key: str | None) -> None:
        request = self._request
        self._require_reports("certify")
        if request.malicious_tickets is not None and self.round.access != "ticket":
            raise ParameterError(
                "malicious_tickets: the round takes reports without tickets; give malicious_share"
            )
        if self.reads:
            self._check_reports()
        items = self.reader.items(self.round) if request.questions else ()
        self.questions = request.core_questions(items)

    def _arguments(self) -> list[object]:
        request = self._request
        shares = request.malicious_share, request.malicious_tickets
        return [shares, request.confidence, self.questions, self.reads]

    def _check_reports(self) -> None:
        if self._seed is None:
            raise RoundOpenError("a certificate from reports is of a closed round")
        if find_spec("scipy") is None:
            raise ParameterError(
                "reports: this server certifies from counts only; with scipy, the extra certify, "
                "it reads the reports too"
            )
        self._require_complete(self.is_complete)

    def _require_complete(self, is_complete: bool) -> None:
        if self.reads and not is_complete:
            raise ReportsGoneError(
                "the certificate reads every report, and the round does not store all of them"
            )

    def _task(self, tally: Tally, is_complete: bool) -> CertificateTask:
        self._require_complete(is_complete)
        request = self._request
        return CertificateTask(
            self.round.oracle,
            tally,
            request.malicious_share,
            request.malicious_tickets,
            request.confidence,
            self.questions,
            self.reads,
            self._seed,
        )


class VerdictAnalysis(Analysis[VerdictResult]):
    """The recommended recovery of a round, its alarms, and what its counts prove."""

    kind = "verdict"
    result = VerdictResult
    reads = True

    def __init__(self, reader: RoundReader, round: RoundInfo) -> None:
        super().__init__(reader, round)
        self._recovery = RecoveryAnalysis(reader, round, RecoveryRequest(AUTO), (), (), ())
        self._alarms = AlarmsAnalysis(reader, round, DEFAULT_RATE, ())
        request = CertificateRequest(malicious_share=0.0)  # the share that is proven is the same
        self._certificate = CertificateAnalysis(reader, round, request)

    def _check(self, key: str | None) -> None:
        for part in (self._recovery, self._alarms, self._certificate):
            part.look_up(key)

    def _arguments(self) -> list[object]:
        return [self.is_complete]

    def _task(self, tally: Tally, is_complete: bool) -> VerdictTask:
        return VerdictTask(
            self._recovery._task(tally, is_complete),
            self._alarms._task(tally, is_complete),
            self._certificate._task(tally, is_complete),
        )


def _versions(rounds: Sequence[StoredRound]) -> list[tuple[int, int]]:
    """Return what identifies the tallies of closed rounds."""
    return [(stored.seq, stored.n) for stored in rounds]

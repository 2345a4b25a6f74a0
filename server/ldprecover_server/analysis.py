"""What is made of a round's reports: recoveries, alarms and suspects."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ldprecover import Estimates, ParameterError, RoundParameters, Tally
from ldprecover._types import Reports
from ldprecover.alarms import Alarm, raise_alarms
from ldprecover.history import Suspects, suspects
from ldprecover.recovery import METHODS, Method, Recovery, ReportSource, recover
from ldprecover_server.errors import NoReportsError, ReportsBusyError, ReportsGoneError
from ldprecover_server.results import Results
from ldprecover_server.rounds import KnownRound, Rounds
from ldprecover_server.store import Store, StoredReports, StoredRound

__all__ = ["INFER", "Analysis", "Evidence", "Targets", "target_indices"]

INFER = "infer"
"""The targets that the earlier rounds of the series give."""

Targets = Sequence[str | int] | Literal["infer"]

_NOBODY = "no item rose beyond noise, so no targets were taken"

_EARLIER = 50  # rounds of a series that are looked at, the last ones


@dataclass(frozen=True)
class Evidence:
    """A round with its tally, and its reports of the same moment."""

    round: KnownRound
    tally: Tally
    stored: StoredReports

    @property
    def complete(self) -> bool:
        """Whether every report that was counted is still kept."""
        return self.tally.n > 0 and self.stored.n == self.tally.n

    def reports(self) -> Iterator[Reports]:
        """Yield the round's reports. Raises ReportsGoneError."""
        for data in self.stored:
            yield np.frombuffer(data, dtype=self.round.oracle.report_dtype)


class Analysis:
    """Recoveries, alarms and suspects of the rounds of a service.

    What reads every report takes long and much of the processor: one such call runs at a time in a process,
    and another is told to come again.
    """

    def __init__(self, rounds: Rounds, results: Results, store: Store) -> None:
        self._rounds = rounds
        self._results = results
        self._store = store
        self._reading = threading.Lock()

    def _evidence(self, round: KnownRound) -> Evidence:
        tally, stored = self._store.tally_and_reports(round.seq, round.oracle.domain_size)
        return Evidence(round, tally, stored)

    def methods(self, identifier: str, key: str | None) -> tuple[KnownRound, list[tuple[Method, str | None]]]:
        """Return every recovery method, with the reason why this round cannot give it, if there is one."""
        evidence = self._evidence(self._results.readable(identifier, key))
        known = frozenset({"counts", "n", "targets"} | ({"reports"} if evidence.complete else set()))
        found = []
        for method in METHODS.values():
            reason = method.refusal(evidence.round.oracle, known)
            found.append((method, reason if evidence.tally.n else "the round has no reports"))
        return evidence.round, found

    def recover(
        self,
        identifier: str,
        *,
        method: str = "ldprecover",
        eta: float | str,
        targets: Targets = (),
        malicious_model: str = "paper",
        support: Sequence[float] | None = None,
        options: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> tuple[KnownRound, Tally, Recovery]:
        """Recover a round's frequencies; see `ldprecover.recover`.

        Raises NoReportsError, ParameterError for what does not fit, ReportsGoneError for a method that needs
        reports which are not kept, ReportsBusyError while another call reads reports.
        """
        round, tally = self._results.tally(identifier, key)
        if targets == INFER:
            earlier = self._earlier(round, key)
            indices: Sequence[int] = self._suspects(round, tally, earlier).items
        else:
            indices = target_indices(round.parameters, targets)
        if not tally.n:
            raise NoReportsError("the round has no reports to recover from")
        nobody = targets == INFER and not indices
        chosen = METHODS.get(method)
        reads = chosen is not None and "reports" in chosen.needs and chosen.unfit(round.oracle) is None
        evidence = self._evidence(round) if reads else None
        if evidence is not None:
            tally = evidence.tally
            if not evidence.complete:
                raise ReportsGoneError(
                    f"{method} reads every report, and of {tally.n} the round keeps {evidence.stored.n}"
                )
        try:
            with self._alone(reads):
                recovery = recover(
                    round.oracle,
                    Estimates.of(round.oracle, tally).frequencies,
                    method=method,
                    eta=eta,
                    targets=indices,
                    malicious_model=malicious_model,
                    n=tally.n,
                    reports=evidence.reports if evidence is not None else None,
                    support=support,
                    options=options,
                )
        except ParameterError as error:
            if not nobody:
                raise
            raise ParameterError(f"{error}; {_NOBODY}") from error
        if nobody:
            recovery = replace(recovery, notes=(*recovery.notes, f"Targets were inferred: {_NOBODY}."))
        return round, tally, recovery

    def alarms(self, identifier: str, rate: float, key: str | None) -> tuple[Evidence, tuple[Alarm, ...]]:
        """Return the alarms of a round: those that read reports where all are kept.

        Raises NoReportsError, ParameterError, ReportsBusyError while another call reads reports.
        """
        evidence = self._evidence(self._results.readable(identifier, key))
        if not evidence.tally.n:
            raise NoReportsError("the round has no reports to test")
        oracle = evidence.round.oracle
        source = ReportSource(oracle, evidence.reports) if evidence.complete else None
        with self._alone(source is not None):
            return evidence, raise_alarms(oracle, evidence.tally, source, rate=rate)

    def suspects(
        self, identifier: str, rate: float, drift: float, key: str | None
    ) -> tuple[KnownRound, Suspects, list[StoredRound]]:
        """Return what rose in a round since the earlier closed rounds of its series, and those rounds.

        Raises NoReportsError, ParameterError without such a round.
        """
        round, tally = self._results.tally(identifier, key)
        earlier = self._earlier(round, key)
        return round, self._suspects(round, tally, earlier, rate=rate, drift=drift), earlier

    def _earlier(self, round: KnownRound, key: str | None) -> list[StoredRound]:
        before = self._store.earlier(round.seq)
        found = [stored for stored in before if stored.state == "closed" and stored.n][:_EARLIER]
        if not found:
            series = round.series
            if series is None:
                raise ParameterError("the round belongs to no series, so there is no round to compare it with")
            if not before:
                raise ParameterError(f"the series {series} has no round before this one to compare it with")
            raise ParameterError(f"of the rounds before this one in the series {series} none is closed and has reports")
        return [stored for stored in found if self._results.readable(stored.id, key)]

    def _suspects(self, round: KnownRound, tally: Tally, earlier: Sequence[StoredRound], **rule: float) -> Suspects:
        if not tally.n:
            raise NoReportsError("the round has no reports to compare")
        pooled = []
        for stored in earlier:
            other = self._rounds.known(stored)
            if other.parameters.items != round.parameters.items:  # two were opened at once
                raise ParameterError(f"the round {stored.name} of the series has other items")
            pooled.append((other.oracle, self._store.tally(other.seq, other.oracle.domain_size)))
        return suspects(round.oracle, tally, pooled, **rule)

    @contextmanager
    def _alone(self, reads: bool) -> Iterator[None]:
        if not reads:
            yield
            return
        if not self._reading.acquire(blocking=False):
            raise ReportsBusyError("another call reads the reports of a round")
        try:
            yield
        finally:
            self._reading.release()


def target_indices(parameters: RoundParameters, targets: Sequence[str | int]) -> list[int]:
    """Return the indices of targets given as labels or indices. Raises ParameterError."""
    if not targets:
        return []
    index = {label: i for i, label in enumerate(parameters.items)}
    found = []
    for target in targets:
        if isinstance(target, str):
            if target not in index:
                raise ParameterError(f"targets: no item is labelled {target[:80]!r}")
            found.append(index[target])
        else:
            if not 0 <= target < len(parameters.items):
                raise ParameterError(f"targets: {target} is no index from 0 to {len(parameters.items) - 1}")
            found.append(target)
    return found

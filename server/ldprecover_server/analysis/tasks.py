"""The tasks of workers and their results, packed and unpacked alike in server and worker."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec
import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import Estimates
from ldprecover.evidence.alarms import Alarm, raise_alarms
from ldprecover.evidence.suspects import suspects
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import (
    AUTO,
    METHODS,
    Recovery,
    RecoveryInputs,
    RecoveryRequest,
    ReportSource,
    run_method,
)
from ldprecover_interface.questions import (
    AnyQuestion,
    CertificateResult,
    certificate_result,
    share_of_tickets,
)

T = TypeVar("T")

RoundTallies = tuple[tuple[FrequencyOracle, Tally], ...]
"""Other rounds over the same items, each as its oracle and its tally."""

_NO_SUSPECTS = "no item rose beyond noise, so no targets were taken"

_ARRAY = 1
"""The MessagePack extension type of an array of doubles."""


@dataclass(frozen=True, eq=False)
class RecoverResult:
    """A recovery from `n` reports."""

    n: int
    recovery: Recovery


@dataclass(frozen=True, eq=False)
class AlarmsResult:
    """The alarms of `n` reports, and whether the reports themselves were read."""

    n: int
    reports_read: bool
    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, eq=False)
class VerdictResult:
    """The recommended recovery of a round, and the other evidence of an attack.

    `alarms` are the names of the raised ones. `least_malicious_share` is what the counts prove.
    """

    recovered: RecoverResult
    alarms: tuple[str, ...]
    least_malicious_share: float


@dataclass(frozen=True, eq=False)
class RecoverTask:
    """A recovery. With `infers_targets` the targets are the items that rose since the history.

    `reads` says whether reports are available.
    """

    oracle: FrequencyOracle
    tally: Tally
    request: RecoveryRequest
    infers_targets: bool
    reads: bool

    def run(self, reports: ReportSource | None) -> RecoverResult:
        """Return the recovery. Raises ParameterError."""
        request, notes = self.request, list[str]()
        no_suspects = False
        if self.infers_targets:
            items = suspects(self.oracle, self.tally, tuple(request.history)).items
            request, no_suspects = replace(request, targets=items), not items
            if request.method != AUTO and "history" not in METHODS[request.method].uses:
                request = replace(request, history=())
        if no_suspects:
            # Without an attack, correcting for an assumed eta would only add noise.
            assumes_eta = "eta" in METHODS[request.method].uses
            request = replace(request, eta=0.0) if assumes_eta else request
            zero_eta = ", and eta is 0" if assumes_eta else ""
            notes.append(f"Targets were inferred: {_NO_SUSPECTS}{zero_eta}.")
        try:
            recovery = run_method(
                RecoveryInputs(
                    self.oracle,
                    Estimates.of(self.oracle, self.tally).frequencies,
                    request,
                    n=self.tally.n,
                    reports=reports,
                )
            )
        except ParameterError as error:
            if not no_suspects:
                raise
            raise ParameterError(f"{error}; {_NO_SUSPECTS}") from error
        return RecoverResult(self.tally.n, replace(recovery, notes=(*recovery.notes, *notes)))


@dataclass(frozen=True, eq=False)
class AlarmsTask:
    """The alarms of a tally and, if `reads`, of the reports."""

    oracle: FrequencyOracle
    tally: Tally
    rate: float
    reads: bool
    canaries: tuple[int, ...] = ()

    def run(self, reports: ReportSource | None) -> AlarmsResult:
        """Return the alarms. Raises ParameterError."""
        alarms = raise_alarms(
            self.oracle, self.tally, reports, rate=self.rate, canaries=self.canaries
        )
        return AlarmsResult(self.tally.n, self.reads, alarms)


@dataclass(frozen=True, eq=False)
class CertificateTask:
    """A certificate, for a share of malicious reports or a number of tickets.

    If it `reads` the reports, the round's `seed` splits them; otherwise `seed` is None.
    """

    oracle: FrequencyOracle
    tally: Tally
    malicious_share: float | None
    malicious_tickets: int | None
    confidence: float
    questions: tuple[AnyQuestion, ...]
    reads: bool
    seed: str | None

    def run(self, reports: ReportSource | None) -> CertificateResult:
        """Return the certificate. Raises ParameterError."""
        share = self.malicious_share
        if share is None:
            share = share_of_tickets(self.malicious_tickets or 0, self.tally.n)
        return certificate_result(
            self.oracle,
            self.tally,
            share,
            self.confidence,
            self.questions,
            reports,
            self.seed,
        )


@dataclass(frozen=True, eq=False)
class VerdictTask:
    """A recovery, the alarms, and the share of malicious reports that the counts prove."""

    recovery: RecoverTask
    alarms: AlarmsTask
    certificate: CertificateTask

    @property
    def oracle(self) -> FrequencyOracle:
        """The oracle of the reports."""
        return self.recovery.oracle

    @property
    def tally(self) -> Tally:
        """The tally of the reports."""
        return self.recovery.tally

    @property
    def reads(self) -> bool:
        """Whether reports are available: the alarms read them."""
        return self.alarms.reads

    def run(self, reports: ReportSource | None) -> VerdictResult:
        """Return the results of the three. Raises ParameterError."""
        return VerdictResult(
            self.recovery.run(reports if self.recovery.reads else None),
            tuple(alarm.name for alarm in self.alarms.run(reports).alarms if alarm.raised),
            self.certificate.run(None).least_malicious_share,
        )


Task = RecoverTask | AlarmsTask | CertificateTask | VerdictTask

Result = RecoverResult | AlarmsResult | CertificateResult | VerdictResult


def pack(result: Result) -> bytes:
    """Return a result as bytes for `unpack`; arrays become arrays of doubles."""
    return msgspec.msgpack.encode(result, enc_hook=_to_plain)


def unpack(cls: type[T], packed: bytes) -> T:
    """Return the result of this class. Raises msgspec.ValidationError for other bytes."""
    return msgspec.msgpack.decode(packed, type=cls, ext_hook=_to_array)


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return msgspec.msgpack.Ext(_ARRAY, value.astype("<f8", copy=False).tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"no result contains a {type(value).__name__}")


def _to_array(code: int, data: memoryview) -> Any:
    if code != _ARRAY:
        raise ValueError(f"no result has the extension {code}")
    return np.frombuffer(data, dtype="<f8")

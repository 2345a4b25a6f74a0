"""What can be asked of a round, each question with its answer: the same in the server and in a
child process.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import Estimates
from ldprecover.evidence.alarms import Alarm, raise_alarms
from ldprecover.evidence.suspects import Suspects, suspects
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import (
    METHODS,
    Conclusions,
    Dropped,
    Recovery,
    RecoveryRequest,
    ReportSource,
    recover,
)

Progress = Callable[[float], None]

NOBODY = "no item rose beyond noise, so no targets were taken"

_ARRAY = 1  # the MessagePack extension that holds an array of doubles


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
class RecoverTask:
    """What `ldprecover.recover` makes of a tally; `earlier` rounds, where they are given, tell the
    targets.

    `history_unused` says that the caller named clean rounds which the method does not use; they are
    not in the request. `reads` says whether the reports are there to be read.
    """

    kind: ClassVar[str] = "recover"
    oracle: FrequencyOracle
    tally: Tally
    request: RecoveryRequest
    earlier: tuple[tuple[FrequencyOracle, Tally], ...] | None
    reads: bool
    canaries: tuple[int, ...] = ()
    history_unused: bool = False

    def answer(
        self, reports: ReportSource | None, progress: Progress | None = None
    ) -> RecoverResult:
        """Recover. Raises ParameterError for what does not fit.

        `progress` is called with the share that is done of what comes after the reports are read.
        """
        request, nobody = self.request, False
        if self.earlier is not None:
            request = replace(
                request, targets=suspects(self.oracle, self.tally, self.earlier).items
            )
            nobody = not request.targets
        # Where nothing was raised, the stretch by an assumed eta only adds noise.
        calm = nobody and "eta" in METHODS[request.method].uses
        if calm:
            request = replace(request, eta=0.0)
        try:
            recovery = recover(
                self.oracle,
                Estimates.of(self.oracle, self.tally).frequencies,
                request,
                n=self.tally.n,
                reports=reports,
                canaries=self.canaries,
                progress=progress,
            )
        except ParameterError as error:
            if not nobody:
                raise
            raise ParameterError(f"{error}; {NOBODY}") from error
        if self.history_unused:
            recovery = replace(
                recovery, notes=(*recovery.notes, f"{request.method} does not use history.")
            )
        if nobody:
            assumed = ", and eta is 0" if calm else ""
            recovery = replace(
                recovery, notes=(*recovery.notes, f"Targets were inferred: {NOBODY}{assumed}.")
            )
        return RecoverResult(self.tally.n, recovery)


@dataclass(frozen=True, eq=False)
class AlarmsTask:
    """The alarms of a tally, with those that read reports where the reports are there to be
    read.
    """

    kind: ClassVar[str] = "alarms"
    oracle: FrequencyOracle
    tally: Tally
    rate: float
    reads: bool
    canaries: tuple[int, ...] = ()

    def answer(
        self, reports: ReportSource | None, progress: Progress | None = None
    ) -> AlarmsResult:
        """Run the tests. Raises ParameterError."""
        alarms = raise_alarms(
            self.oracle, self.tally, reports, rate=self.rate, canaries=self.canaries
        )
        return AlarmsResult(self.tally.n, self.reads, alarms)


@dataclass(frozen=True, eq=False)
class SuspectsTask:
    """What rose in a tally since the earlier rounds."""

    kind: ClassVar[str] = "suspects"
    reads: ClassVar[bool] = False
    oracle: FrequencyOracle
    tally: Tally
    earlier: tuple[tuple[FrequencyOracle, Tally], ...]
    rate: float
    drift: float

    def answer(self, reports: ReportSource | None, progress: Progress | None = None) -> Suspects:
        """Compare. Raises ParameterError."""
        return suspects(self.oracle, self.tally, self.earlier, rate=self.rate, drift=self.drift)


Task = RecoverTask | AlarmsTask | SuspectsTask

Result = RecoverResult | AlarmsResult | Suspects


def pack(answer: Result) -> bytes:
    """Return an answer as bytes that the `unpack` function of its kind reads."""
    return msgspec.msgpack.encode(_plain(answer))


def unpack_recovery(data: bytes) -> RecoverResult:
    """Return the answer to a RecoverQuestion."""
    found = _decoded(data)
    recovery = found["recovery"]
    if recovery["conclusions"] is not None:
        recovery["conclusions"] = _conclusions(recovery["conclusions"])
    return RecoverResult(found["n"], _made(Recovery, recovery))


def unpack_alarms(data: bytes) -> AlarmsResult:
    """Return the answer to an AlarmsQuestion."""
    found = _decoded(data)
    return AlarmsResult(
        found["n"], found["reports_read"], tuple(_made(Alarm, each) for each in found["alarms"])
    )


def unpack_suspects(data: bytes) -> Suspects:
    """Return the answer to a SuspectsQuestion."""
    return _made(Suspects, _decoded(data))


def _plain(value: Any) -> Any:
    """Return a value as MessagePack has it; arrays are of doubles."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return msgspec.msgpack.Ext(_ARRAY, value.astype("<f8", copy=False).tobytes())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


def _decoded(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.msgpack.decode(data, ext_hook=_array)
    return found


def _array(code: int, data: memoryview) -> Any:
    if code != _ARRAY:
        raise ValueError(f"no answer has the extension {code}")
    return np.frombuffer(data, dtype="<f8")


def _conclusions(found: dict[str, Any]) -> Conclusions:
    found["suspects"] = [(item, probability) for item, probability in found["suspects"]]
    found["dropped"] = [_made(Dropped, each) for each in found["dropped"]]
    return _made(Conclusions, found)


T = TypeVar("T")


def _made(cls: type[T], found: dict[str, Any]) -> T:
    return cls(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in found.items()
        }
    )

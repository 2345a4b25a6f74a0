"""The functions that workers run, and their results, packed and unpacked alike on both sides."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np

from ldprecover.certificate import certify
from ldprecover.changes import Changes
from ldprecover.evidence.alarms import DEFAULT_RATE, Alarm, raise_alarms
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import Recovery, RecoveryRequest, recover_tally
from ldprecover.reports import ReportSource
from ldprecover.reports.tally import Tally

T = TypeVar("T")

_COLUMNS = (
    *("changes", "standard_errors"),
    *("lower", "upper", "certified_lower", "certified_upper"),
)
_ARRAY = 1
"""The MessagePack extension type of an array of doubles."""


@dataclass(frozen=True, eq=False)
class Task:
    """A computation over a round: a function with its keyword arguments.

    `compute` takes oracle, tally, and the reports or None. It raises ParameterError. `reads` says
    whether the reports are available.
    """

    compute: partial[Any]
    oracle: FrequencyOracle
    tally: Tally
    reads: bool = False

    def run(self, reports: ReportSource | None) -> Any:
        """Return the result. Raises ParameterError."""
        return self.compute(self.oracle, self.tally, reports)


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

    recovery: Recovery
    alarms: tuple[str, ...]
    least_malicious_share: float


def alarms(
    oracle: FrequencyOracle,
    tally: Tally,
    reports: ReportSource | None,
    *,
    rate: float = DEFAULT_RATE,
    canaries: tuple[int, ...] = (),
) -> AlarmsResult:
    """Return the alarms of a tally and, if they are available, of the reports."""
    raised = raise_alarms(oracle, tally, reports, rate=rate, canaries=canaries)
    return AlarmsResult(tally.n, reports is not None, raised)


def verdict(
    oracle: FrequencyOracle, tally: Tally, reports: ReportSource | None, *, recovery_reads: bool
) -> VerdictResult:
    """Return the recommended recovery, the alarms, and the malicious share that counts prove."""
    read = reports if recovery_reads else None
    return VerdictResult(
        recovery=recover_tally(oracle, tally, read, request=RecoveryRequest()),
        alarms=tuple(each.name for each in alarms(oracle, tally, reports).alarms if each.raised),
        least_malicious_share=certify(oracle, tally, malicious_share=0.0).least_malicious_share,
    )


def changes(
    oracle: FrequencyOracle,
    tally: Tally,
    reports: ReportSource | None,
    *,
    history: Sequence[tuple[FrequencyOracle, Tally]],
    is_attacked: bool,
    **options: Any,
) -> dict[str, Any]:
    """Return the changes since the tally in `history`, as fields of the interface's `Changed`.

    `options` are those of `Changes`.
    """
    ((_, before),) = history
    result = Changes(oracle, before, tally, **options)
    columns = {name: getattr(result, name).tolist() for name in _COLUMNS}
    return columns | {
        "n": tally.n,
        "since_n": before.n,
        "malicious_share": result.assumed_share,
        "words": result.words(is_attacked=is_attacked),
        "proven_up_to": [None if math.isnan(x) else x for x in result.proven_up_to.tolist()],
    }


def pack(result: object) -> bytes:
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

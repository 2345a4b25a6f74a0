"""The one contract of every recovery method: from what is known of a poisoned round to a recovery."""

from collections.abc import Callable
from dataclasses import dataclass

from ldprecover._checks import finite_vector, target_indices
from ldprecover._types import FloatArray
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.malicious import MALICIOUS_MODELS

__all__ = ["DEFAULT_ETA", "MAX_ETA", "Knowledge", "Method", "Recovery"]

DEFAULT_ETA, MAX_ETA = 0.2, 10.0


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a server knows of a poisoned round, and what it assumes of the attack.

    `poisoned` are the unbiased, unclipped frequencies f~_Z of the d items. `eta`, from 0 to 10, is
    the assumed ratio m/n of malicious to genuine users. `targets` are the items known to be
    attacked, as indices: kept sorted and once each, never all d of them. `malicious_model` names
    one of MALICIOUS_MODELS. Everything is checked, whether or not a method uses it.

    Raises ParameterError.
    """

    oracle: FrequencyOracle
    poisoned: FloatArray
    eta: float = DEFAULT_ETA
    targets: tuple[int, ...] = ()
    malicious_model: str = "paper"

    def __post_init__(self) -> None:
        d = self.oracle.domain_size
        poisoned = finite_vector(self.poisoned, "frequencies")
        if poisoned.size != d:
            raise ParameterError(f"frequencies must be of the {d} items, not {poisoned.size}")
        if isinstance(self.eta, bool) or not isinstance(self.eta, int | float):
            raise ParameterError("eta must be a number")
        if not 0 <= self.eta <= MAX_ETA:
            raise ParameterError(f"eta must be from 0 to {MAX_ETA:g}, not {self.eta}")
        targets = target_indices(self.targets, d)
        if len(targets) == d:
            raise ParameterError(f"targets must leave out at least one of the {d} items")
        if self.malicious_model not in MALICIOUS_MODELS:
            raise ParameterError(
                f"malicious_model must be one of {', '.join(MALICIOUS_MODELS)}, not {self.malicious_model!r}"
            )
        object.__setattr__(self, "poisoned", poisoned)
        object.__setattr__(self, "eta", float(self.eta))
        object.__setattr__(self, "targets", targets)


@dataclass(frozen=True, eq=False)
class Recovery:
    """What a recovery method made of poisoned frequencies. Vectors are of the d items.

    `eta` and `targets` are what the method used: 0 and none where it uses neither. `malicious_sum`
    is S = (1 - qd)/(p - q). `malicious` is the assumed f~_Y, `genuine` the estimate
    (1 + eta) f~_Z - eta f~_Y before refining, `recovered` the result. `notes` are sentences in
    which the method says what it assumed and what came of it.
    """

    method: str
    eta: float
    targets: tuple[int, ...]
    malicious_sum: float
    poisoned: FloatArray
    malicious: FloatArray
    genuine: FloatArray
    recovered: FloatArray
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Method:
    """A recovery method: its name, one line on it, the fields of Knowledge it uses beside f~_Z, and itself."""

    name: str
    summary: str
    uses: frozenset[str]
    recover: Callable[[Knowledge], Recovery]

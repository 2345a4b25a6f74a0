"""Checks the result of a method at run time: a plugin may break the contract."""

import math

import numpy as np

from ldprecover._checks import is_finite_array, real
from ldprecover._origins import named
from ldprecover.errors import ContractError, LDPRecoverError
from ldprecover.recovery.conclusions import Conclusions
from ldprecover.recovery.contract import AUTO, Method, Recovery, RecoveryInputs

_ROUNDING = 1e-6  # error allowed in a sum of one, relative to the sum of absolute values or to 1


def recovered_by(method: Method, inputs: RecoveryInputs) -> Recovery:
    """Run a method and return its checked result.

    The check costs O(d). Raises this package's errors, MemoryError and the errors of reading the
    reports as they are. Raises ContractError, with the method and its distribution, for any other
    error, and for a result that is not a valid recovery of the d items with the properties that the
    method `gives`.
    """
    subject = named("method", method.name)
    try:
        recovery = method.recover(inputs)
    except (LDPRecoverError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if inputs.reports is not None and inputs.reports.failure is error:
            raise
        raise ContractError(f"{subject} raised {type(error).__name__}: {error!s:.200}") from error
    wrong = _wrong(recovery, method, inputs.oracle.domain_size)
    if wrong is not None:
        raise ContractError(f"{subject} returned what it may not: {wrong}")
    return recovery


def _wrong(recovery: object, method: Method, d: int) -> str | None:
    """Return what is wrong with a result, or None."""
    if not isinstance(recovery, Recovery):
        return f"it must be a Recovery, not {recovery!r:.80}"
    if method.name not in (recovery.method, AUTO):  # auto returns the recovery of another
        return f"method must be {method.name!r}, not {recovery.method!r:.80}"
    for name in ("poisoned", "malicious", "genuine", "recovered"):
        if not is_finite_array(getattr(recovery, name), d):
            return f"{name} must be a numpy array of {d} finite numbers"
    for name in ("eta", "malicious_sum"):
        number = getattr(recovery, name)
        if not _finite_number(number):
            return f"{name} must be a finite number, not {number!r:.80}"
    targets = recovery.targets
    if not isinstance(targets, tuple) or not all(
        isinstance(v, int | np.integer) and 0 <= v < d for v in targets
    ):
        return f"targets must be a tuple of item indices from 0 to {d - 1}, not {targets!r:.80}"
    if not isinstance(recovery.notes, tuple) or not all(
        isinstance(note, str) for note in recovery.notes
    ):
        return f"notes must be a tuple of sentences, not {recovery.notes!r:.80}"
    return _wrong_conclusions(recovery.conclusions, d) or _wrong_result(
        recovery.recovered, method.gives
    )


def _wrong_result(recovered: np.ndarray, gives: str) -> str | None:
    if gives == "distribution" and recovered.min() < 0:
        return (
            f"recovered must be a distribution, and item index {int(recovered.argmin())} has "
            f"{recovered.min():.3g}"
        )
    if gives == "frequencies":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        total, size = float(recovered.sum()), float(np.abs(recovered).sum())
    return (
        None
        if abs(total - 1) <= _ROUNDING * max(1.0, size)
        else f"recovered must sum to one, not {total:.6g}"
    )


def _wrong_conclusions(conclusions: object, d: int) -> str | None:
    if conclusions is None:
        return None
    if not isinstance(conclusions, Conclusions):
        return f"conclusions must be Conclusions or None, not {conclusions!r:.80}"
    for name in ("standard_deviations", "lower", "upper"):
        vector = getattr(conclusions, name)
        if vector is not None and not is_finite_array(vector, d):
            return f"{name} of the conclusions must be a numpy array of {d} finite numbers, or None"
    for name in ("attack_probability", "beta", "beta_low", "beta_high", "history_weight"):
        number = getattr(conclusions, name)
        if number is not None and not _finite_number(number):
            return f"{name} of the conclusions must be a finite number or None, not {number!r:.80}"
    return None


def _finite_number(value: object) -> bool:
    number = real(value)
    return number is not None and math.isfinite(number)

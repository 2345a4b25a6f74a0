"""Estimates of one poisoned round, by recovery methods and by references, and their errors.

A reference is an estimate that needs what the simulator alone knows, such as the genuine reports.

    list(measure(round_, [GENUINE, POISONED, MethodSpec(method="ldprecover")]))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import nan
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from ldprecover import ParameterError, Recovery, RecoveryRequest
from ldprecover.estimation.metrics import mse
from ldprecover.recovery import METHODS
from ldprecover_experiments.simulation.parameters import ETA, TARGETS
from ldprecover_experiments.simulation.poisoned_round import (
    PoisonedRound,
    Targets,
    Vector,
    errors,
)
from ldprecover_experiments.studies.specs import MethodSpec


@dataclass(frozen=True, kw_only=True)
class MethodOutcome:
    """The errors of one estimate of a round, averages over its items.

    `mse` is the mean squared error, NaN for a method that rejects the round or fails; `refused` is
    then the reason. `fg` is the frequency gain, None without attacked items. `malicious_mse` is the
    error of the assumed malicious frequencies, None for a method that assumes none. `coverage` is
    the share of items whose 95 % interval holds the truth, `variance` the mean squared standard
    deviation, and `attack_probability` the method's own; each may be None.
    """

    method: str
    mse: Annotated[float, BeforeValidator(lambda value: nan if value is None else value)]
    fg: float | None = None
    malicious_mse: float | None = None
    seconds: float = 0.0
    coverage: float | None = None
    variance: float | None = None
    attack_probability: float | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Reference:
    """An estimate computed from the round and the assumed eta by `function`."""

    name: str
    function: Callable[[PoisonedRound, float], Vector]


GENUINE = Reference("genuine", lambda round_, eta: round_.f_genuine)
POISONED = Reference("poisoned", lambda round_, eta: round_.poisoned.frequencies)

Estimator = Reference | MethodSpec
"""Anything that estimates the frequencies of a round."""


def recovery_of(spec: MethodSpec, round_: PoisonedRound, eta: float = ETA) -> Recovery:
    """Return a method's recovery of a round. Raises ParameterError for one that does not fit."""
    history = []
    if spec.history:
        assert round_.earlier is not None
        history.append((round_.oracle, round_.earlier))
    has_targets = spec.targets or "targets" in METHODS[spec.method].needs
    request = RecoveryRequest(
        spec.method,
        eta=_eta(spec, round_, eta),
        targets=known_targets(round_) if has_targets else (),
        malicious_model="custom" if spec.support else spec.malicious_model,
        support=round_.support if spec.support else None,
        options=spec.options,
        history=history,
    )
    return round_.recover(request, with_reports=spec.reads)


def _eta(spec: MethodSpec, round_: PoisonedRound, eta: float) -> float | str:
    """Return the eta that a method assumes, where the study assumes `eta`."""
    if spec.eta is None:
        return eta
    if spec.eta == "true":
        return round_.eta
    return spec.eta


def known_targets(round_: PoisonedRound) -> Targets:
    """Return the targets that LDPRecover* knows (paper, VI-A).

    For an attack without targets they are the items that rose most: five, at most half. Without an
    attack they are random.
    """
    if round_.targets is not None:
        return round_.targets
    rise = round_.poisoned.frequencies - round_.f_genuine
    number = min(TARGETS // 2, rise.size // 2)
    return tuple(sorted(np.argsort(rise, kind="stable")[-number:].tolist()))


def measure(
    round_: PoisonedRound, estimators: Iterable[Estimator], eta: float = ETA
) -> Iterator[MethodOutcome]:
    """Yield the outcome of each estimator. `eta` is the assumed m/n."""
    for estimator in estimators:
        started, recovery = time.perf_counter(), None
        try:
            if isinstance(estimator, Reference):
                frequencies = estimator.function(round_, eta)
            else:
                recovery = recovery_of(estimator, round_, eta)
                frequencies = recovery.recovered
        except ParameterError as error:
            yield MethodOutcome(
                method=estimator.name, mse=nan, refused=" ".join(str(error).split())
            )
            continue
        seconds = time.perf_counter() - started
        targets = None if round_.attack is None else round_.targets
        squared, gain = errors(frequencies, round_.truth, round_.f_genuine, targets)
        own = {} if recovery is None else _own_errors(round_, recovery)
        yield MethodOutcome(method=estimator.name, mse=squared, fg=gain, seconds=seconds, **own)


def _own_errors(round_: PoisonedRound, recovery: Recovery) -> dict[str, Any]:
    """Return the fields of a MethodOutcome that a method has and a reference has not."""
    certainty = {}
    ran = METHODS.get(recovery.method)  # none if a method of a module has another name
    assumes = ran is not None and "malicious_model" in ran.uses
    if assumes and round_.f_malicious is not None:
        certainty["malicious_mse"] = mse(recovery.malicious, round_.f_malicious)
    if (conclusions := recovery.conclusions) is None:
        return certainty
    if conclusions.lower is not None and conclusions.upper is not None:
        covered = (conclusions.lower <= round_.truth) & (round_.truth <= conclusions.upper)
        certainty["coverage"] = float(np.mean(covered))
    if conclusions.standard_deviations is not None:
        certainty["variance"] = float(np.mean(conclusions.standard_deviations**2))
    if conclusions.attack_probability is not None:
        certainty["attack_probability"] = float(conclusions.attack_probability)
    return certainty

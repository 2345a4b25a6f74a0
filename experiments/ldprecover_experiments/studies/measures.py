"""Estimates of one poisoned round, by recovery methods and by references, and their errors.

A reference is an estimate that needs what the simulator alone knows, such as the genuine reports.

    list(measure(round_, [GENUINE, POISONED, MethodSpec("ldprecover")]))
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import nan
from typing import Any

import numpy as np

from ldprecover import ParameterError, Recovery, RecoveryRequest
from ldprecover.estimation.metrics import frequency_gain, mse
from ldprecover.recovery import METHODS, Conclusions
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound, Targets, Vector
from ldprecover_experiments.studies.attacks import TARGETS
from ldprecover_experiments.studies.parameters import ETA


@dataclass(frozen=True)
class Outcome:
    """The errors of one estimate of a round, averages over its items.

    `mse` is the mean squared error, NaN for a method that rejects the round or fails; `refused` is
    then the reason. `fg` is the frequency gain, None without targets. `malicious_mse` is the error
    of the assumed malicious frequencies, None for a method that assumes none. `coverage` is the
    share of items whose 95 % interval holds the truth, `variance` the mean squared standard
    deviation, and `attack_probability` the method's own; each may be None.
    """

    method: str
    mse: float
    fg: float | None
    malicious_mse: float | None
    seconds: float
    coverage: float | None = None
    variance: float | None = None
    attack_probability: float | None = None
    refused: str | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated frequencies, the malicious frequencies assumed for them, and the conclusions."""

    frequencies: Vector
    malicious: Vector | None = None
    conclusions: Conclusions | None = None


@dataclass(frozen=True)
class Reference:
    """An estimate computed from the round and the assumed eta by `function`."""

    name: str
    function: Callable[[PoisonedRound, float], Vector]

    def estimate(self, round_: PoisonedRound, eta: float) -> Estimate:
        """Return the estimate."""
        return Estimate(self.function(round_, eta))


GENUINE = Reference("genuine", lambda round_, eta: round_.f_genuine)
POISONED = Reference("poisoned", lambda round_, eta: round_.poisoned.frequencies)
UNIFORM = Reference(
    "uniform", lambda round_, eta: np.full_like(round_.truth, 1 / round_.truth.size)
)


@dataclass(frozen=True)
class MethodSpec:
    """A method of METHODS and its knowledge of the attack.

    `eta` None is the one of the run, "true" the round's own m/n. With `targets` the method knows
    the attacked items. With `support` it knows the true share of malicious reports that supports
    each item (the malicious model custom). `reads` False withholds the reports; `history` gives it
    an earlier clean round.

        MethodSpec("told", "ldprecover", eta=0.05, targets=True)
    """

    name: str
    method: str = "ldprecover"
    eta: float | str | None = None
    targets: bool = False
    malicious_model: str = "paper"
    support: bool = False
    options: Mapping[str, float | str] = field(default_factory=dict)
    reads: bool = True
    history: bool = False

    @property
    def reads_reports(self) -> bool:
        """Whether the method uses the reports if they are kept."""
        method = METHODS[self.method]
        return "reports" in method.needs or (self.reads and "reports" in method.better_with)

    @property
    def text(self) -> str:
        """The specification as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    def recovery(self, round_: PoisonedRound, eta: float | str = ETA) -> Recovery:
        """Return the recovery of a round. Raises ParameterError for one that does not fit."""
        history = []
        if self.history:
            assert round_.earlier is not None
            history.append((round_.oracle, round_.earlier))
        has_targets = self.targets or "targets" in METHODS[self.method].needs
        request = RecoveryRequest(
            self.method,
            eta=eta if self.eta is None else round_.eta if self.eta == "true" else self.eta,
            targets=known_targets(round_) if has_targets else (),
            malicious_model="custom" if self.support else self.malicious_model,
            support=round_.support if self.support else None,
            options=self.options,
            history=history,
        )
        return round_.recover(request, with_reports=self.reads)

    def estimate(self, round_: PoisonedRound, eta: float) -> Estimate:
        """Return the recovered frequencies. Raises as `recovery` does."""
        recovery = self.recovery(round_, eta)
        assumes = "malicious_model" in METHODS[self.method].uses
        malicious = recovery.malicious if assumes else None
        return Estimate(recovery.recovered, malicious, recovery.conclusions)


Estimator = Reference | MethodSpec
"""Anything that estimates the frequencies of a round."""


def known_targets(round_: PoisonedRound) -> Targets:
    """Return the targets that LDPRecover* knows (paper, VI-A).

    For an attack without targets they are the five items that rose most.
    """
    if round_.targets is not None:
        return round_.targets
    rise = round_.poisoned.frequencies - round_.f_genuine
    return tuple(sorted(np.argsort(rise, kind="stable")[-(TARGETS // 2) :].tolist()))


def measure(
    round_: PoisonedRound, estimators: Iterable[Estimator], eta: float = ETA
) -> Iterator[Outcome]:
    """Yield the outcome of each estimator. `eta` is the assumed m/n."""
    for estimator in estimators:
        started = time.perf_counter()
        try:
            estimate = estimator.estimate(round_, eta)
        except ParameterError as error:
            reason = " ".join(str(error).split())
            yield Outcome(estimator.name, nan, None, None, 0.0, refused=reason)
            continue
        seconds = time.perf_counter() - started
        squared, gain = errors(estimate.frequencies, round_.truth, round_.f_genuine, round_.targets)
        malicious_error = (
            None
            if estimate.malicious is None or round_.f_malicious is None
            else mse(estimate.malicious, round_.f_malicious)
        )
        certainty = _certainty(round_, estimate.conclusions)
        yield Outcome(estimator.name, squared, gain, malicious_error, seconds, **certainty)


def errors(
    estimate: Vector, truth: Vector, genuine: Vector, targets: Targets | None
) -> tuple[float, float | None]:
    """Return the mean squared error of an estimate, and with targets its frequency gain."""
    gain = None if targets is None else frequency_gain(estimate, genuine, targets)
    return mse(estimate, truth), gain


def _certainty(round_: PoisonedRound, conclusions: Conclusions | None) -> dict[str, Any]:
    """Return the fields of an Outcome that compare the errors with a method's conclusions."""
    if conclusions is None:
        return {}
    certainty = {}
    if conclusions.lower is not None and conclusions.upper is not None:
        covered = (conclusions.lower <= round_.truth) & (round_.truth <= conclusions.upper)
        certainty["coverage"] = float(np.mean(covered))
    if conclusions.standard_deviations is not None:
        certainty["variance"] = float(np.mean(conclusions.standard_deviations**2))
    if conclusions.attack_probability is not None:
        certainty["attack_probability"] = float(conclusions.attack_probability)
    return certainty

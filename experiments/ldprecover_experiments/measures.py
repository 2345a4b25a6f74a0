"""What each method makes of one poisoned round, and how far that is from the truth."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import nan
from typing import Any

import numpy as np

from ldprecover import (
    ContractError,
    ParameterError,
    Recovery,
    RecoveryRequest,
    project_simplex,
    recover,
)
from ldprecover.estimation.metrics import frequency_gain, mse
from ldprecover.recovery import METHODS, Conclusions
from ldprecover_experiments.oracle_bounds import floor_counts, floor_removed
from ldprecover_experiments.parameters import ETA, TARGETS
from ldprecover_experiments.poisoned_round import PoisonedRound, Targets, Vector

Recoverer = Callable[..., tuple[Vector, Vector]]
"""(method, eta, targets, malicious_model) -> what was recovered, and the malicious frequencies it
assumed.
"""

LABELS = {
    "genuine": "genuine",
    "poisoned": "poisoned",
    "norm-sub": "Norm-Sub",
    "scaled": "Π((1+η)f)",
    "ldprecover": "LDPRecover",
    "ldprecover-star": "LDPRecover*",
    "ldprecover-star-exact": "LDPRecover* exact",
    "detection": "Detection",
    "detection-projected": "Detection, projected",
    "oracle": "oracle",
    "uniform": "uniform",
    "k-means-raw": "k-means",
    "k-means": "k-means, projected",
    "ldprecover-km": "LDPRecover-KM",
}
"""Name of each method of the paper's evaluation -> what tables and figures call it.

`genuine` is f~_X~, raw; `scaled` the projection of (1 + eta) f~_Z; `oracle` subtracts the true
malicious frequencies with the true eta and projects, which leaves the projection of f~_X~;
`ldprecover-star-exact` counts the items outside T as d - r. `detection` drops all reports in T;
`uniform` answers 1/d; `k-means-raw` is the mean estimate of the larger cluster of subsets.
"""


@dataclass(frozen=True)
class Outcome:
    """One method's error on one round.

    `mse` is NaN where the method refuses the round or fails, and `refused` says why; `fg` is None
    without targets, `malicious_mse` None where no f~_Y was assumed. Of a method that says how sure
    it is: `coverage` is the share of the items whose 95 % interval holds the truth, `variance` the
    mean over the items of its squared standard deviations, `attack_probability` its own.
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


@dataclass(frozen=True)
class MethodSpec:
    """A method of METHODS and what it is told of the attack.

    `eta` None is the cell's, "true" the round's own m/n. With `targets` it is told the items that
    are attacked, and with `support` the true share of the malicious reports that supports each
    item: the malicious model custom. `reads` False keeps the reports from it, and `history` gives
    it an earlier clean round.
    """

    name: str
    method: str = "ldprecover"
    eta: float | str | None = None
    targets: bool = False
    malicious_model: str = "paper"
    support: bool = False
    options: Mapping[str, float] = field(default_factory=dict)
    reads: bool = True
    history: bool = False

    @property
    def reads_reports(self) -> bool:
        """Whether it makes something of the reports, where they are kept."""
        method = METHODS[self.method]
        return "reports" in method.needs or (self.reads and "reports" in method.better_with)

    @property
    def text(self) -> str:
        """All of it, in one line that no other specification has."""
        return json.dumps(asdict(self), sort_keys=True)

    def recovery(self, round_: PoisonedRound, eta: float | str = ETA) -> Recovery:
        """Return what the method makes of a round. Raises ParameterError where it refuses."""
        history = []
        if self.history:
            assert round_.earlier is not None
            history.append((round_.oracle, round_.earlier))
        has_targets = self.targets or "targets" in METHODS[self.method].needs
        request = RecoveryRequest(
            self.method,
            eta=eta if self.eta is None else round_.eta if self.eta == "true" else self.eta,
            targets=told(round_) if has_targets else (),
            malicious_model="custom" if self.support else self.malicious_model,
            support=round_.support if self.support else None,
            options=self.options,
            history=history,
        )
        return recover(
            round_.oracle,
            round_.poisoned.frequencies,
            request,
            n=round_.together.n,
            reports=round_.reports if self.reads else None,
        )


def told(round_: PoisonedRound) -> Targets:
    """Return what LDPRecover* is told: the targets, or where there are none the r/2 that rose most
    (paper, VI-A).
    """
    return most_risen(round_, TARGETS // 2) if round_.targets is None else round_.targets


def most_risen(round_: PoisonedRound, number: int) -> Targets:
    """Return the items that rose most over the frequencies before the attack."""
    rise = round_.poisoned.frequencies - round_.f_genuine
    return tuple(sorted(np.argsort(rise, kind="stable")[-number:].tolist()))


def in_process(round_: PoisonedRound) -> Recoverer:
    """Return the recovery of this round by the library itself."""

    def recoverer(
        method: str, eta: float, targets: Targets = (), malicious_model: str = "paper"
    ) -> tuple[Vector, Vector]:
        result = recover(
            round_.oracle,
            round_.poisoned.frequencies,
            RecoveryRequest(method, eta=eta, targets=targets, malicious_model=malicious_model),
        )
        return result.recovered, result.malicious

    return recoverer


def outcomes(
    round_: PoisonedRound,
    recoverer: Recoverer,
    *,
    eta: float = ETA,
    xi: float = 0.0,
    trial: int = 0,
) -> Iterator[Outcome]:
    """Yield what each method of the paper's evaluation that fits the round makes of it."""
    oracle, f_poisoned, f_malicious = round_.oracle, round_.poisoned.frequencies, round_.f_malicious

    def made(method: str, answer: Callable[[], Vector | tuple[Vector, Vector]]) -> Outcome:
        return _outcome(round_, method, answer)

    yield made("genuine", lambda: round_.f_genuine)
    yield made("poisoned", lambda: f_poisoned)
    yield made("norm-sub", lambda: recoverer("norm-sub", eta)[0])
    yield made("scaled", lambda: project_simplex((1 + eta) * f_poisoned))
    yield made("ldprecover", lambda: recoverer("ldprecover", eta))
    if f_malicious is None:
        yield made("uniform", lambda: np.full_like(f_poisoned, 1 / f_poisoned.size))
        return
    known = told(round_)
    yield made("ldprecover-star", lambda: recoverer("ldprecover", eta, known))
    yield made("ldprecover-star-exact", lambda: recoverer("ldprecover", eta, known, "exact"))
    if oracle.traits.one_item and round_.targets is not None:
        kept = round_.together.counts(oracle).copy()
        kept[list(round_.targets)] = 0  # a report supports one item, so counts show what is dropped
        f_kept = oracle.estimate(kept, int(kept.sum()))
        yield made("detection", lambda: f_kept)
        yield made("detection-projected", lambda: project_simplex(f_kept))
    yield made(
        "oracle", lambda: project_simplex((1 + round_.eta) * f_poisoned - round_.eta * f_malicious)
    )
    if xi:
        subsets = {"rate": xi, "seed": trial}
        clustered = MethodSpec("k-means", "k-means", options=subsets).recovery(round_, eta)
        yield made("k-means-raw", lambda: clustered.genuine)
        yield made("k-means", lambda: clustered.recovered)
        spec = MethodSpec("ldprecover-km", "ldprecover-km", options=subsets)
        yield made(spec.name, lambda: spec.recovery(round_, eta).recovered)


def measured(
    round_: PoisonedRound, methods: Sequence[MethodSpec], eta: float = ETA
) -> Iterator[Outcome]:
    """Yield `genuine` and `poisoned`, and what each of these methods makes of a round."""
    yield _outcome(round_, "genuine", lambda: round_.f_genuine)
    yield _outcome(round_, "poisoned", lambda: round_.poisoned.frequencies)
    for spec in methods:
        found: list[Recovery] = []

        def answer(
            spec: MethodSpec = spec, found: list[Recovery] = found
        ) -> tuple[Vector, Vector | None]:
            found.append(spec.recovery(round_, eta))
            assumes = "malicious_model" in METHODS[spec.method].uses
            return found[0].recovered, found[0].malicious if assumes else None

        try:
            outcome = _outcome(round_, spec.name, answer)
        except (ParameterError, ContractError) as error:
            outcome = Outcome(spec.name, nan, None, None, 0.0, refused=" ".join(str(error).split()))
        yield outcome if not found else replace(outcome, **_certainty(round_, found[0].conclusions))


def reckoned(round_: PoisonedRound) -> Iterator[Outcome]:
    """Yield what needs the truth: the genuine reports projected, the computed floors, and 1/d for
    every item.
    """
    yield _outcome(round_, "genuine, projected", lambda: project_simplex(round_.f_genuine))
    yield _outcome(round_, "floor, attack removed", lambda: floor_removed(round_))
    yield _outcome(round_, "floor, counts", lambda: floor_counts(round_))
    yield _outcome(round_, "uniform", lambda: np.full_like(round_.truth, 1 / round_.truth.size))


def _certainty(round_: PoisonedRound, said: Conclusions | None) -> dict[str, Any]:
    """Return how the errors compare with what a method says of them, as far as it does."""
    if said is None:
        return {}
    found = {}
    if said.lower is not None and said.upper is not None:
        found["coverage"] = float(
            np.mean((said.lower <= round_.truth) & (round_.truth <= said.upper))
        )
    if said.standard_deviations is not None:
        found["variance"] = float(np.mean(said.standard_deviations**2))
    if said.attack_probability is not None:
        found["attack_probability"] = float(said.attack_probability)
    return found


def _outcome(
    round_: PoisonedRound, method: str, answer: Callable[[], Vector | tuple[Vector, Vector | None]]
) -> Outcome:
    started = time.perf_counter()
    given = answer()
    seconds = time.perf_counter() - started
    estimate, assumed = given if isinstance(given, tuple) else (given, None)
    gain = (
        None
        if round_.targets is None
        else frequency_gain(estimate, round_.f_genuine, round_.targets)
    )
    wrong = (
        None if assumed is None or round_.f_malicious is None else mse(assumed, round_.f_malicious)
    )
    return Outcome(method, mse(estimate, round_.truth), gain, wrong, seconds)

"""What each method makes of one poisoned round, and how far that is from the truth."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover import project_simplex, recover
from ldprecover.metrics import frequency_gain, mse
from ldprecover_cli.reproduce.cells import TARGETS, Cell
from ldprecover_cli.reproduce.simulated import Round

__all__ = ["LABELS", "Outcome", "Recoverer", "in_process", "outcomes"]

Vector = NDArray[np.float64]
Recoverer = Callable[..., tuple[Vector, Vector]]
"""(method, eta, targets, malicious_model) -> what was recovered, and the malicious frequencies it assumed."""

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
"""Name of each method -> what tables and figures call it.

`genuine` is f~_X~, raw; `scaled` the projection of (1 + eta) f~_Z; `oracle` subtracts the true malicious
frequencies with the true eta and projects, which leaves the projection of f~_X~; `ldprecover-star-exact` counts
the items outside T as d - r. `detection` drops all reports in T; `uniform` answers 1/d; `k-means-raw` is the mean
estimate of the larger cluster of subsets.
"""


@dataclass(frozen=True)
class Outcome:
    """One method's error on one round. `fg` is None without targets, `malicious_mse` where no f~_Y was assumed."""

    method: str
    mse: float
    fg: float | None
    malicious_mse: float | None
    seconds: float


def in_process(round_: Round) -> Recoverer:
    """Return the recovery of this round by the library itself."""
    together = round_.genuine + round_.malicious
    poisoned = round_.oracle.estimate(together.counts(round_.oracle), together.n)

    def recoverer(
        method: str, eta: float, targets: tuple[int, ...] = (), malicious_model: str = "paper"
    ) -> tuple[Vector, Vector]:
        result = recover(
            round_.oracle, poisoned, method=method, eta=eta, targets=targets, malicious_model=malicious_model
        )
        return result.recovered, result.malicious

    return recoverer


def outcomes(round_: Round, cell: Cell, recoverer: Recoverer) -> Iterator[Outcome]:
    """Yield what each method that fits the cell makes of its round."""
    oracle, genuine, malicious, eta = round_.oracle, round_.genuine, round_.malicious, cell.eta
    f_genuine = oracle.estimate(genuine.counts(oracle), genuine.n)
    f_malicious = oracle.estimate(malicious.counts(oracle), malicious.n) if malicious.n else None
    together = genuine + malicious
    f_poisoned = oracle.estimate(together.counts(oracle), together.n)

    def measured(method: str, answer: Callable[[], Vector | tuple[Vector, Vector]]) -> Outcome:
        started = time.perf_counter()
        given = answer()
        seconds = time.perf_counter() - started
        estimate, assumed = given if isinstance(given, tuple) else (given, None)
        gain = None if round_.targets is None else frequency_gain(estimate, f_genuine, round_.targets)
        wrong = None if assumed is None or f_malicious is None else mse(assumed, f_malicious)
        return Outcome(method, mse(estimate, round_.truth), gain, wrong, seconds)

    yield measured("genuine", lambda: f_genuine)
    yield measured("poisoned", lambda: f_poisoned)
    yield measured("norm-sub", lambda: recoverer("norm-sub", eta)[0])
    yield measured("scaled", lambda: project_simplex((1 + eta) * f_poisoned))
    yield measured("ldprecover", lambda: recoverer("ldprecover", eta))
    if f_malicious is None:
        yield measured("uniform", lambda: np.full(f_genuine.size, 1 / f_genuine.size))
        return
    known = round_.targets if round_.targets is not None else _most_risen(f_poisoned - f_genuine)
    yield measured("ldprecover-star", lambda: recoverer("ldprecover", eta, known))
    yield measured("ldprecover-star-exact", lambda: recoverer("ldprecover", eta, known, "exact"))
    if oracle.traits.one_item and round_.targets is not None:
        kept = together.counts(oracle).copy()
        kept[list(round_.targets)] = 0  # a GRR report supports its item alone, so counts show what is dropped
        f_kept = oracle.estimate(kept, int(kept.sum()))
        yield measured("detection", lambda: f_kept)
        yield measured("detection-projected", lambda: project_simplex(f_kept))
    true_eta = malicious.n / genuine.n
    yield measured("oracle", lambda: project_simplex((1 + true_eta) * f_poisoned - true_eta * f_malicious))
    if round_.reports is not None:
        known_reports: dict[str, Any] = {
            "eta": eta, "reports": round_.reports, "options": {"rate": cell.xi, "seed": cell.trial},
        }  # fmt: skip
        clustered = recover(oracle, f_poisoned, method="k-means", **known_reports)
        yield measured("k-means-raw", lambda: clustered.genuine)
        yield measured("k-means", lambda: clustered.recovered)
        yield measured(
            "ldprecover-km", lambda: recover(oracle, f_poisoned, method="ldprecover-km", **known_reports).recovered
        )


def _most_risen(rise: Vector) -> tuple[int, ...]:
    """Return the r/2 items that rose most over the frequencies before the attack (paper, VI-A)."""
    return tuple(sorted(np.argsort(rise, kind="stable")[-(TARGETS // 2) :].tolist()))

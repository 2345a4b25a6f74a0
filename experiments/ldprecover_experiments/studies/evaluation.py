"""The references and methods of the paper's evaluation."""

from collections.abc import Iterator

import numpy as np

from ldprecover import project_simplex
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound, Vector
from ldprecover_experiments.studies.measures import (
    GENUINE,
    POISONED,
    Estimator,
    Reference,
    recovery_of,
)
from ldprecover_experiments.studies.specs import MethodSpec


def estimators(round_: PoisonedRound, xi: float = 0.0, trial: int = 0) -> Iterator[Estimator]:
    """Yield the references and methods of the paper's evaluation that fit a round.

    `xi` > 0 adds the defences over random subsets of this share of the users, drawn with `trial`.
    """
    yield from (GENUINE, POISONED, _NORM_SUB, _SCALED, _LDPRECOVER)
    if not round_.malicious.n:
        yield _UNIFORM
        return
    yield from (_STAR, _STAR_EXACT)
    if round_.oracle.traits.one_item and round_.targets is not None:
        yield from _DETECTION
    yield _ORACLE
    if xi:
        subsets: dict[str, float | str] = {"rate": xi, "seed": trial}
        k_means = MethodSpec(method="k-means", options=subsets, name="k-means")
        yield Reference(
            "k-means-raw", lambda round_, eta: recovery_of(k_means, round_, eta).genuine
        )
        yield k_means
        yield MethodSpec(method="ldprecover-km", options=subsets, name="ldprecover-km")


def _detection(round_: PoisonedRound) -> Vector:
    """Return the estimate without the reports of targets.

    A report supports one item, so the counts show which reports are dropped.
    """
    counts = round_.tally.counts(round_.oracle).copy()
    counts[list(round_.targets or ())] = 0
    return round_.oracle.estimate(counts, int(counts.sum()))


def _oracle(round_: PoisonedRound) -> Vector:
    """Return the projected estimate minus the true malicious frequencies, with the true eta."""
    assert round_.f_malicious is not None
    f_poisoned = round_.poisoned.frequencies
    return project_simplex((1 + round_.eta) * f_poisoned - round_.eta * round_.f_malicious)


_NORM_SUB = MethodSpec(method="norm-sub")
_LDPRECOVER = MethodSpec(method="ldprecover")
_STAR = MethodSpec(method="ldprecover", targets=True, name="ldprecover-star")
_STAR_EXACT = MethodSpec(
    method="ldprecover", targets=True, malicious_model="exact", name="ldprecover-star-exact"
)
_SCALED = Reference(
    "scaled", lambda round_, eta: project_simplex((1 + eta) * round_.poisoned.frequencies)
)
_UNIFORM = Reference(
    "uniform", lambda round_, eta: np.full_like(round_.truth, 1 / round_.truth.size)
)
_DETECTION = (
    Reference("detection", lambda round_, eta: _detection(round_)),
    Reference("detection-projected", lambda round_, eta: project_simplex(_detection(round_))),
)
_ORACLE = Reference("oracle", lambda round_, eta: _oracle(round_))

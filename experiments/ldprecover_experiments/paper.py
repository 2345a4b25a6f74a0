"""The paper's tables and figures, each as the cells it is made of."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from ldprecover import project_simplex
from ldprecover_experiments.attacks import AttackSpec
from ldprecover_experiments.measures import (
    GENUINE,
    POISONED,
    UNIFORM,
    Estimator,
    MethodSpec,
    Reference,
)
from ldprecover_experiments.parameters import BETA, Cell
from ldprecover_experiments.poisoned_round import HASH_ONLY, PoisonedRound, Vector

PROTOCOLS = ("grr", "oue", "olh")
PAPER_NAMES = {"cities": "IPUMS", "fire": "Fire"}
PAPER_ITEMS = {"cities": 102, "fire": 490}
"""The paper's data sets and their items, by the data set that stands in for them."""

PAPER_TABLE = {
    ("cities", "grr"): (5.89e-4, 5.31e-4),
    ("cities", "oue"): (3.81e-5, 5.33e-4),
    ("cities", "olh"): (1.21e-6, 5.30e-4),
    ("fire", "grr"): (1.68e-3, 3.62e-5),
    ("fire", "oue"): (2.93e-5, 3.64e-5),
    ("fire", "olh"): (6.87e-7, 3.63e-5),
}
"""The paper's Table I: MSE before and after recovery."""

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
"""Name of each method of the paper's evaluation -> its label in tables and figures."""


def estimators(round_: PoisonedRound, xi: float = 0.0, trial: int = 0) -> Iterator[Estimator]:
    """Yield the references and methods of the paper's evaluation that fit a round.

    `xi` > 0 adds the defences over random subsets of this share of the users, drawn with `trial`.
    """
    yield from (GENUINE, POISONED, MethodSpec("norm-sub", "norm-sub"), _SCALED)
    yield MethodSpec("ldprecover")
    if not round_.malicious.n:
        yield UNIFORM
        return
    yield MethodSpec("ldprecover-star", targets=True)
    yield MethodSpec("ldprecover-star-exact", targets=True, malicious_model="exact")
    if round_.oracle.traits.one_item and round_.targets is not None:
        yield from _DETECTION
    yield _ORACLE
    if xi:
        subsets = {"rate": xi, "seed": trial}
        k_means = MethodSpec("k-means", "k-means", options=subsets)
        yield Reference("k-means-raw", lambda round_, eta: k_means.recovery(round_, eta).genuine)
        yield k_means
        yield MethodSpec("ldprecover-km", "ldprecover-km", options=subsets)


def _detection(round_: PoisonedRound) -> Vector:
    """Return the estimate without the reports of targets.

    A report supports one item, so the counts show which reports are dropped.
    """
    counts = round_.together.counts(round_.oracle).copy()
    counts[list(round_.targets or ())] = 0
    return round_.oracle.estimate(counts, int(counts.sum()))


def _oracle(round_: PoisonedRound) -> Vector:
    """Return the projected estimate minus the true malicious frequencies, with the true eta."""
    assert round_.f_malicious is not None
    f_poisoned = round_.poisoned.frequencies
    return project_simplex((1 + round_.eta) * f_poisoned - round_.eta * round_.f_malicious)


_SCALED = Reference(
    "scaled", lambda round_, eta: project_simplex((1 + eta) * round_.poisoned.frequencies)
)
_DETECTION = (
    Reference("detection", lambda round_, eta: _detection(round_)),
    Reference("detection-projected", lambda round_, eta: project_simplex(_detection(round_))),
)
_ORACLE = Reference("oracle", lambda round_, eta: _oracle(round_))


@dataclass(frozen=True)
class Kind:
    """An attack in a report model, under some protocols."""

    attack: AttackSpec | None
    model: str = "one-hot"
    protocols: tuple[str, ...] = PROTOCOLS
    beta: float = BETA


@dataclass(frozen=True)
class Experiment:
    """One table or figure: the kinds of attack in it, and the parameter that it varies, if it
    does.
    """

    name: str
    where: str
    shows: str
    kinds: tuple[Kind, ...]
    varied: Literal["beta", "epsilon", "eta", "xi"] | None = None
    values: tuple[float, ...] = ()

    def cells(self, data: str, trials: int) -> Iterator[Cell]:
        """Yield the cells over one data set, the trials of a setting together."""
        for kind in self.kinds:
            for protocol in kind.protocols:
                cell = Cell(data, protocol, kind.attack, kind.model, kind.beta)
                for values in self._values():
                    yield from (replace(cell, **values, trial=trial) for trial in range(trials))

    def _values(self) -> list[dict[str, Any]]:
        return [{self.varied: value} for value in self.values] if self.varied else [{}]


_MGA = AttackSpec("mga")
_AA = tuple(Kind(AttackSpec("aa", kind)) for kind in ("peaked", "diffuse"))
_ATTACKS = (
    Kind(AttackSpec("manip")),
    Kind(_MGA),
    *_AA,
    Kind(_MGA, "crafted", ("oue", "olh")),
    Kind(_MGA, "sampled", ("olh",)),
)
_BETAS = (0.0, 0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1)
_WIDE_BETAS = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25)
_EPSILONS = (0.1, 0.2, 0.4, 0.5, 0.8, 1.2, 1.6)
_XIS = (0.1, 0.3, 0.5, 0.7, 0.9)
_ETAS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4)

_TABLE = (
    Experiment(
        "table1",
        "Table I",
        "recovery of unpoisoned frequencies",
        (
            Kind(None, "none", (*PROTOCOLS, HASH_ONLY), 0.0),
            # A share beta more users, all honest: N = n/(1 - beta), as if the attack had been
            # switched off.
            Kind(None, "input", (*PROTOCOLS, HASH_ONLY)),
        ),
    ),
    Experiment("mse", "VI-C", "mean squared error under each attack", _ATTACKS),
    Experiment(
        "fg",
        "VI-C",
        "frequency gain of the targets",
        tuple(k for k in _ATTACKS if k.attack == _MGA),
    ),
    Experiment(
        "malicious",
        "VI-C",
        "error of the assumed malicious frequencies",
        (Kind(_MGA),),
        "beta",
        _BETAS[1:],
    ),
    Experiment("sweep-beta", "VI-D", "error over the malicious share beta", _AA, "beta", _BETAS),
    Experiment(
        "sweep-epsilon", "VI-D", "error over the privacy budget epsilon", _AA, "epsilon", _EPSILONS
    ),
    Experiment("sweep-eta", "VI-D", "error over the assumed eta", _AA, "eta", _ETAS),
    Experiment(
        "ipa",
        "VII-B",
        "MGA against the same lies reported honestly",
        (Kind(_MGA), Kind(_MGA, "input")),
        "beta",
        _WIDE_BETAS,
    ),
    Experiment(
        "km", "VII-B", "k-means over random subsets of users", (Kind(_MGA, "input"),), "xi", _XIS
    ),
    Experiment(
        "multi",
        "VII-C",
        "five attackers together",
        tuple(Kind(AttackSpec("aa", kind, 5)) for kind in ("diffuse", "peaked")),
        "beta",
        _WIDE_BETAS,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _TABLE}
"""Name to experiment, in the paper's order."""


def cells_of(names: Iterable[str], data: Iterable[str], trials: int) -> list[Cell]:
    """Return the cells of some experiments over some data sets, each once: experiments share
    many.
    """
    pairs = product(data, names)
    return list(
        dict.fromkeys(
            cell for data, name in pairs for cell in EXPERIMENTS[name].cells(data, trials)
        )
    )

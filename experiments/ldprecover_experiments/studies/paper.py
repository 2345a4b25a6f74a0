"""The paper's tables and figures, each as the cells it is made of."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from typing import Any, Literal

from ldprecover import project_simplex
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound, Vector
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.measures import (
    GENUINE,
    POISONED,
    UNIFORM,
    Estimator,
    Reference,
    recovery_of,
)
from ldprecover_experiments.studies.specs import AttackSpec, MethodSpec

_DOCUMENT = tomllib.loads(files(__package__).joinpath("paper.toml").read_text(encoding="utf-8"))

PROTOCOLS = ("grr", "oue", "olh")

METHODS: Mapping[str, Mapping[str, str]] = _DOCUMENT["methods"]
"""Name of each method of the paper's evaluation -> its label, and colour and header if any."""


def estimators(round_: PoisonedRound, xi: float = 0.0, trial: int = 0) -> Iterator[Estimator]:
    """Yield the references and methods of the paper's evaluation that fit a round.

    `xi` > 0 adds the defences over random subsets of this share of the users, drawn with `trial`.
    """
    yield from (GENUINE, POISONED, MethodSpec(method="norm-sub"), _SCALED)
    yield MethodSpec(method="ldprecover")
    if not round_.malicious.n:
        yield UNIFORM
        return
    star = MethodSpec(method="ldprecover", targets=True, name="ldprecover-star")
    yield star
    exact = {"name": "ldprecover-star-exact", "malicious_model": "exact"}
    yield star.model_copy(update=exact)
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


_SCALED = Reference(
    "scaled", lambda round_, eta: project_simplex((1 + eta) * round_.poisoned.frequencies)
)
_DETECTION = (
    Reference("detection", lambda round_, eta: _detection(round_)),
    Reference("detection-projected", lambda round_, eta: project_simplex(_detection(round_))),
)
_ORACLE = Reference("oracle", lambda round_, eta: _oracle(round_))


@dataclass(frozen=True)
class Experiment:
    """One table or figure: its settings, as cells without a data set, and the parameter that it
    varies, if it does. `columns` are the methods of its table and `headers` other headers
    than theirs, `figure_methods` those of its figure, which shows `number`.
    """

    name: str
    where: str
    shows: str
    settings: Sequence[Cell]
    varied: Literal["beta", "epsilon", "eta", "xi"] | None = None
    values: Sequence[float] = ()
    number: Literal["mse", "fg", "malicious_mse"] = "mse"
    columns: Sequence[str] = (
        *("poisoned", "norm-sub", "ldprecover", "ldprecover-star"),
        *("detection", "detection-projected", "oracle"),
    )
    headers: Mapping[str, str] = field(default_factory=dict)
    figure_methods: Sequence[str] = (
        "poisoned",
        "norm-sub",
        "ldprecover",
        "ldprecover-star",
        "oracle",
    )

    def cells(self, data: str, trials: int) -> Iterator[Cell]:
        """Yield the cells over one data set, the trials of a setting together."""
        for cell in self.settings:
            yield from (replace(cell, data=data, trial=trial) for trial in range(trials))


def _experiment(kinds: Iterable[Mapping[str, Any]], **fields: Any) -> Experiment:
    settings, varied = [], fields.get("varied")
    for kind in kinds:
        own = {"protocols": PROTOCOLS, **kind}
        own["attack"] = AttackSpec.of_mapping(own["attack"])
        for protocol, value in product(own.pop("protocols"), fields.get("values", (None,))):
            changed = {varied: value} if varied else {}
            settings.append(Cell(data="", protocol=protocol, **own | changed))
    return Experiment(settings=settings, **fields)


EXPERIMENTS = {each["name"]: _experiment(**each) for each in _DOCUMENT["experiments"]}
"""Name to experiment, in the paper's order."""


FIGURES = {
    "fig3": ("mse",),
    "fig4": ("fg",),
    "fig5": ("sweep-beta", "sweep-epsilon", "sweep-eta"),
    "fig6": ("sweep-beta", "sweep-epsilon", "sweep-eta"),
    "fig7": ("malicious",),
    "fig8": ("ipa",),
    "fig9": ("km",),
    "fig10": ("multi",),
}
"""The paper's figure -> the experiments that it shows."""

DATA_OF_FIGURES = {"fig5": "cities", "fig6": "fire"}
"""The stand-in for the data of a figure that shows one data set; of others, both."""


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

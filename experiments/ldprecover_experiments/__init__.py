"""Experiments with poisoned rounds: the paper's evaluation, studies of one's own, the demo.

    Study.load("study.toml").run()

Names load when they are first used: importing the package is quick.
"""

from typing import TYPE_CHECKING

from ldprecover.lazy_names import lazy_getattr

# ruff: noqa: F403
if TYPE_CHECKING:  # the list of names is `_MODULES`
    from ldprecover_experiments.errors import *
    from ldprecover_experiments.simulation.comparison import *
    from ldprecover_experiments.simulation.datasets import *
    from ldprecover_experiments.simulation.demo import *
    from ldprecover_experiments.simulation.demo_settings import *
    from ldprecover_experiments.simulation.poisoned_round import *
    from ldprecover_experiments.simulation.simulated_round import *
    from ldprecover_experiments.studies.cells import *
    from ldprecover_experiments.studies.measures import *
    from ldprecover_experiments.studies.results import *
    from ldprecover_experiments.studies.rows import *
    from ldprecover_experiments.studies.specs import *
    from ldprecover_experiments.studies.study import *

_MODULES = {
    "studies.specs": "AttackSpec MethodSpec",
    "simulation.comparison": "Comparison",
    "simulation.datasets": "dataset_of",
    "simulation.demo": "Demo",
    "simulation.demo_settings": "DemoSettings",
    "errors": "DatasetError ExperimentError",
    "studies.measures": "MethodOutcome",
    "studies.cells": "Cell",
    "studies.rows": "CellRow",
    "simulation.poisoned_round": "PoisonedRound",
    "studies.results": "Results",
    "simulation.simulated_round": "LabelledEstimates SimulatedRecovery SimulatedRound simulate",
    "studies.study": "Study",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = tuple(_MODULE_OF)
__getattr__ = lazy_getattr(__name__, _MODULE_OF, "experiments")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Experiments with poisoned rounds: the paper's evaluation, studies of one's own, the demo.

    Study.load("study.toml").run()

Names load when they are first used: importing the package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldprecover_experiments.attacks import AttackSpec
    from ldprecover_experiments.comparison import Comparison
    from ldprecover_experiments.datasets import dataset_of
    from ldprecover_experiments.demo import Demo
    from ldprecover_experiments.demo_settings import DemoSettings
    from ldprecover_experiments.errors import ExperimentError
    from ldprecover_experiments.measures import MethodSpec, Outcome
    from ldprecover_experiments.parameters import Cell
    from ldprecover_experiments.poisoned_round import PoisonedRound
    from ldprecover_experiments.results import Results
    from ldprecover_experiments.studies import Study

_HOME = {
    "AttackSpec": "attacks",
    "Cell": "parameters",
    "Comparison": "comparison",
    "Demo": "demo",
    "DemoSettings": "demo_settings",
    "ExperimentError": "errors",
    "MethodSpec": "measures",
    "Outcome": "measures",
    "PoisonedRound": "poisoned_round",
    "Results": "results",
    "Study": "studies",
    "dataset_of": "datasets",
}

__all__ = [
    "AttackSpec",
    "Cell",
    "Comparison",
    "Demo",
    "DemoSettings",
    "ExperimentError",
    "MethodSpec",
    "Outcome",
    "PoisonedRound",
    "Results",
    "Study",
    "dataset_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

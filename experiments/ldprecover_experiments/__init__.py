"""Experiments with poisoned rounds: the paper's evaluation, studies of one's own, the demo.

    Study.load("study.toml").run()

Names load when they are first used: importing the package is quick.
"""

from typing import TYPE_CHECKING

from ldprecover_client.lazy_names import lazy_getattr

# ruff: noqa: F403
if TYPE_CHECKING:  # the list of names is `_MODULES`
    from ldprecover_experiments.attacks import *
    from ldprecover_experiments.comparison import *
    from ldprecover_experiments.datasets import *
    from ldprecover_experiments.demo import *
    from ldprecover_experiments.demo_settings import *
    from ldprecover_experiments.errors import *
    from ldprecover_experiments.measures import *
    from ldprecover_experiments.parameters import *
    from ldprecover_experiments.poisoned_round import *
    from ldprecover_experiments.results import *
    from ldprecover_experiments.simulated_round import *
    from ldprecover_experiments.studies import *

_MODULES = {
    "attacks": "AttackSpec",
    "comparison": "Comparison",
    "datasets": "dataset_of",
    "demo": "Demo",
    "demo_settings": "DemoSettings",
    "errors": "ExperimentError",
    "measures": "MethodSpec Outcome",
    "parameters": "Cell",
    "poisoned_round": "PoisonedRound",
    "results": "Results",
    "simulated_round": "LabelledEstimates SimulatedRecovery SimulatedRound simulate",
    "studies": "Study",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = tuple(_MODULE_OF)
__getattr__ = lazy_getattr(__name__, _MODULE_OF, "experiments")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

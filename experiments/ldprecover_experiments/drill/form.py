"""What a form can ask for, from the tables of protocols, attacks, methods and data sets, and what
it means.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ldprecover import ParameterError
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_attacker import ATTACKS, attack_options
from ldprecover_attacker.base import MODELS
from ldprecover_client import Dataset
from ldprecover_experiments.datasets import NAMES, dataset_of
from ldprecover_experiments.demo import Demo
from ldprecover_experiments.demo_settings import DemoSettings
from ldprecover_experiments.drill.drill_round import MAX_BYTES, MAX_USERS, Played, Told
from ldprecover_experiments.drill.fields import Fields
from ldprecover_experiments.drill.heat_map import MAX_MAP_USERS, MAX_TRIALS, HeatMap

_METHODS = ("ldprecover", "unmix")
"""Those that are asked for unless told otherwise."""

_PROJECTION = "norm-sub"
"""The method that every score has, and that nobody has to ask for."""

_ROUND = (
    *(
        "kind",
        "dataset",
        "protocol",
        "epsilon",
        "users",
        "beta",
        "attack",
        "model",
        "targets",
        "eta",
        "seed",
    ),
    *("methods", "told"),
)
_MAP = (
    *("kind", "dataset", "protocol", "epsilon", "users", "beta", "targets", "eta", "seed"),
    *("trials", "reports"),
)
_MAP_USERS, _MAP_TRIALS = 20_000, 1


@dataclass(frozen=True)
class Offer:
    """What a form can ask for; `defaults` are what it shows at first.

    Data sets are known by name. A file of one's own is offered only where `defaults` name it: what
    comes from a page names no files. Raises DatasetError where it cannot be read.
    """

    defaults: DemoSettings

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The data sets by name."""
        found = {name: dataset_of(name) for name in NAMES}
        given = self.defaults
        if given.dataset not in found:
            found[Path(given.dataset).name] = dataset_of(given.dataset, given.column)
        return found

    def as_json(self) -> dict[str, Any]:
        """Return all choices, the defaults and the limits."""
        defaults = asdict(self.defaults) | {"dataset": self._default_dataset, "methods": _METHODS}
        del defaults["column"]
        return {
            "datasets": [
                {"name": name, "items": len(each.items), "source": each.source}
                for name, each in self.datasets.items()
            ],
            "protocols": [{"name": name, "title": kind.title} for name, kind in PROTOCOLS.items()],
            "attacks": [
                {
                    "name": name,
                    "summary": (kind.__doc__ or name).strip().splitlines()[0],
                    "targeted": "targets" in attack_options(name),
                    "modelled": "model" in attack_options(name),
                }
                for name, kind in sorted(ATTACKS.items())
            ],
            "models": list(MODELS),
            "methods": [
                {"name": name, "summary": each.summary, "targets": "targets" in each.uses}
                for name, each in METHODS.items()
                if name != _PROJECTION
            ],
            "defaults": defaults
            | {"told": True, "map_users": _MAP_USERS, "trials": _MAP_TRIALS, "reports": False},
            "limits": {"users": MAX_USERS, "map_users": MAX_MAP_USERS, "trials": MAX_TRIALS},
        }

    def round(self, given: Any) -> Played:
        """Return the drill that a form asks for. Raises ParameterError where it cannot be
        played.
        """
        fields, default = Fields(given, _ROUND), self.defaults
        fields.among("kind", "round", ("round", "map"))
        settings = DemoSettings(
            dataset=fields.among("dataset", self._default_dataset, self.datasets),
            protocol=fields.among("protocol", default.protocol, PROTOCOLS),
            epsilon=fields.number("epsilon", default.epsilon),
            users=fields.whole("users", default.users, 1, MAX_USERS),
            beta=fields.number("beta", default.beta),
            attack=fields.among("attack", default.attack, ATTACKS),
            model=fields.among("model", default.model, MODELS),
            targets=fields.whole("targets", default.targets, 1, MAX_USERS),
            eta=fields.number("eta", default.eta),
            seed=fields.whole("seed", default.seed, 0, 2**32 - 1),
        )
        chosen, told = (
            fields.several("methods", _METHODS, [name for name in METHODS if name != _PROJECTION]),
            fields.flag("told", True),
        )
        demo = Demo(settings, self.datasets[settings.dataset])
        everybody = settings.users + demo.malicious_users
        if everybody > MAX_USERS:
            raise ParameterError(
                f"users: a drill has at most {MAX_USERS:,}, malicious ones included, not "
                f"{everybody:,}"
            )
        size = everybody * demo.parameters.oracle.report_dtype.itemsize
        if size > MAX_BYTES:
            raise ParameterError(
                f"users: their reports would take {size >> 20:,} MiB, and a drill makes at most "
                f"{MAX_BYTES >> 20:,}; "
                "take fewer users or another protocol"
            )
        return Played(demo, Told.all_of(chosen, knows_targets=told and demo.targets is not None))

    def map(self, given: Any) -> HeatMap:
        """Return the heat map that a form asks for. Raises ParameterError where it cannot be
        made.
        """
        fields, default = Fields(given, _MAP), self.defaults
        name = fields.among("dataset", self._default_dataset, self.datasets)
        return HeatMap(
            dataset=self.datasets[name],
            protocol=fields.among("protocol", default.protocol, PROTOCOLS),
            epsilon=fields.number("epsilon", default.epsilon),
            users=fields.whole("users", _MAP_USERS, 1, MAX_MAP_USERS),
            beta=fields.number("beta", default.beta),
            targets=fields.whole("targets", default.targets, 1, MAX_MAP_USERS),
            eta=fields.number("eta", default.eta),
            seed=fields.whole("seed", default.seed, 0, 2**32 - 1),
            trials=fields.whole("trials", _MAP_TRIALS, 1, MAX_TRIALS),
            reports=fields.flag("reports", False),
        )

    @property
    def _default_dataset(self) -> str:
        name = self.defaults.dataset
        return name if name in NAMES else Path(name).name

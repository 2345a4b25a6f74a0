"""The forms of a drill: their fields, choices, defaults and limits."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from ldprecover import ParameterError
from ldprecover.planning.choosing import choose
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_attacker import ATTACKS, attack_options
from ldprecover_client import Dataset
from ldprecover_experiments.datasets import NAMES, dataset_of
from ldprecover_experiments.demo import Demo
from ldprecover_experiments.demo_settings import DemoSettings
from ldprecover_experiments.drill.drill_round import MAX_BYTES, MAX_USERS, DrillRound, method_specs
from ldprecover_experiments.drill.heat_map import MAX_MAP_USERS, MAX_TRIALS, HeatMap
from ldprecover_experiments.drill.words import MODELS, attack_words
from ldprecover_experiments.validation import Form

_METHODS = ("ldprecover", "unmix")
"""The default methods."""

AUTO = "auto"
"""Stands for the protocol that the planner proposes."""

_MAP_USERS, _MAP_TRIALS = 20_000, 1


class CommonForm(Form):
    """The fields of rounds and heat maps."""

    owner: ClassVar[str] = "a drill"
    kind: Literal["round", "map"] = "round"
    dataset: str
    protocol: str
    epsilon: float
    beta: float
    eta: float
    seed: int = Field(ge=0, lt=1 << 32)


class RoundForm(CommonForm):
    """A round on the server."""

    users: int = Field(ge=1, le=MAX_USERS)
    attack: str
    model: str
    targets: int = Field(ge=1, le=MAX_USERS)
    methods: list[str] = Field(default=list(_METHODS))
    told: bool = True  # phrases: quoted


class MapForm(CommonForm):
    """A heat map of attacks and methods."""

    users: int = Field(ge=1, le=MAX_MAP_USERS)
    targets: int = Field(ge=1, le=MAX_MAP_USERS)
    trials: int = Field(default=_MAP_TRIALS, ge=1, le=MAX_TRIALS)
    reports: bool = False


F = TypeVar("F", RoundForm, MapForm)


def _method_choices() -> list[str]:
    """Return all methods but norm-sub, which every score has, and auto, which calls another."""
    return [name for name in METHODS if name not in ("norm-sub", "auto")]


@dataclass(frozen=True)
class FormChoices:
    """The choices of the forms; `defaults` are their first values.

    A page selects data sets by name, and cannot name files. A file is a choice only if `defaults`
    name it. Raises DatasetError for a file that cannot be read.
    """

    defaults: DemoSettings

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The data sets by name."""
        datasets = {name: dataset_of(name) for name in NAMES}
        own = self.defaults
        if own.dataset not in datasets:
            datasets[Path(own.dataset).name] = dataset_of(own.dataset, own.column)
        return datasets

    def as_json(self) -> dict[str, Any]:
        """Return all choices, the defaults and the limits."""
        defaults = asdict(self.defaults) | {"dataset": self._default_dataset, "methods": _METHODS}
        del defaults["column"]
        return {
            "datasets": [
                {"name": name, "items": len(each.items), "source": each.source}
                for name, each in self.datasets.items()
            ],
            "protocols": {AUTO: "the best for these users and items"}
            | {name: kind.title for name, kind in PROTOCOLS.items()},
            "attacks": {
                name: asdict(attack_words(name))
                | {
                    "targeted": "targets" in attack_options(name),
                    "modelled": "model" in attack_options(name),
                }
                for name in sorted(ATTACKS)
            },
            "models": dict(MODELS),
            "methods": {name: METHODS[name].summary for name in _method_choices()},
            "defaults": defaults
            | {"told": True, "map_users": _MAP_USERS, "trials": _MAP_TRIALS, "reports": False},
            "limits": {"users": MAX_USERS, "map_users": MAX_MAP_USERS, "trials": MAX_TRIALS},
        }

    def round(self, form_data: Any) -> DrillRound:
        """Return the drill of a form. Raises ParameterError for one that cannot be played."""
        form = self._checked(RoundForm, form_data)
        settings = DemoSettings(**form.model_dump(exclude={"kind", "methods", "told"}))
        demo = Demo(settings, self.datasets[settings.dataset])
        everybody = settings.users + demo.malicious_users
        if everybody > MAX_USERS:
            raise ParameterError(
                f"users: a drill has at most {MAX_USERS:,}, malicious ones included, not "
                f"{everybody:,}"
            )
        size = everybody * demo.parameters.oracle.wire.dtype.itemsize
        if size > MAX_BYTES:
            raise ParameterError(
                f"users: their reports would take {size >> 20:,} MiB, and a drill makes at most "
                f"{MAX_BYTES >> 20:,}; take fewer users or another protocol"
            )
        choices = _method_choices()
        if unknown := set(form.methods).difference(choices):
            raise ParameterError(
                f"methods must be one of {', '.join(choices)}, not {min(unknown)!r:.40}"
            )
        chosen = [name for name in choices if name in form.methods]
        knows_targets = form.told and demo.targets is not None
        return DrillRound(demo, tuple(method_specs(chosen, knows_targets=knows_targets)))

    def map(self, form_data: Any) -> HeatMap:
        """Return the heat map of a form. Raises ParameterError for one that cannot be made."""
        form = self._checked(MapForm, form_data)
        settings = form.model_dump(exclude={"kind"})
        return HeatMap(**settings | {"dataset": self.datasets[form.dataset]})

    def _checked(self, model: type[F], form_data: Any) -> F:
        """Return the form, completed with the defaults, with a protocol in the place of auto."""
        if isinstance(form_data, dict):
            defaults = asdict(self.defaults) | {"dataset": self._default_dataset}
            if model is MapForm:
                defaults["users"] = _MAP_USERS
            form_data = {n: v for n, v in defaults.items() if n in model.model_fields} | form_data
        form = model.of_mapping(form_data)
        if form.dataset not in self.datasets:
            raise ParameterError(
                f"dataset must be one of {', '.join(self.datasets)}, not {form.dataset!r:.40}"
            )
        if form.protocol != AUTO:
            return form
        d = len(self.datasets[form.dataset].items)
        best = choose(d, form.epsilon, form.users).best.oracle.protocol
        return form.model_copy(update={"protocol": best})

    @property
    def _default_dataset(self) -> str:
        name = self.defaults.dataset
        return name if name in NAMES else Path(name).name

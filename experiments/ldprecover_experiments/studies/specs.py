"""The attacks, methods and data files of a study. The JSON of attack and method identifies it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator

from ldprecover import ParameterError
from ldprecover._checks import did_you_mean
from ldprecover.plugins import METHOD_REGISTRY, ensure, name_of
from ldprecover.recovery import METHODS, Method, RecoveryRequest
from ldprecover_attacker import ATTACKS, Attack, attack_options, make_attack
from ldprecover_attacker.plugins import ATTACK_REGISTRY
from ldprecover_client import Dataset
from ldprecover_experiments.simulation.datasets import NAMES, dataset_of
from ldprecover_experiments.studies.records import module_hash
from ldprecover_experiments.validation import OneOrMore, StrictModel, suggestion

REPORT_MODELS = ("crafted", "input", "one-hot", "sampled")
"""The ways to make a malicious report: see AttackSpec."""

_OF_NO_ATTACK = {"none": "none", "honest": "input"}
"""The report models of no further users, and of further honest users."""


class AttackSpec(StrictModel):
    """An attack, how its reports are made, and its options; the name "none" is no attack.

    The model "one-hot" is a report that supports exactly its item (the paper's), "sampled" is its
    item encoded and not perturbed, "crafted" is the attack's own report, "input" is perturbed
    honestly. `targets` is the number of targets, which each trial draws (default 10), or their
    labels. `protocols` are those of the study that the attack is run on, None for all. `label` is
    what results call the attack. The other options are those of `ldprecover_attacker.make_attack`.
    A name "module:name" is that of an Attack or a function in an importable module, as
    `attack_class` takes it; `code` is then the SHA-256 of the module's file. Raises ParameterError.

        AttackSpec(name="apa", targets=5, each=2)
    """

    owner: ClassVar[str] = "an attack"
    short = (str, Attack, Callable)
    name: Annotated[str, BeforeValidator(name_of)]
    model: str = Field(default_factory=lambda data: _OF_NO_ATTACK.get(data["name"], "crafted"))
    targets: (
        Annotated[int, Field(ge=1)]
        | Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
        | None
    ) = None
    kind: str | None = None
    attackers: int = 1
    size: int | None = None
    each: int | None = None
    rate: float | None = None
    search: int | Literal["exhaustive"] | None = None
    item: int | str | None = None
    against: str | None = None
    label: str | None = None
    protocols: OneOrMore[str] | None = Field(default=None, exclude=True)
    code: str | None = Field(default_factory=lambda data: module_hash(data["name"]))

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        ensure(name, ATTACK_REGISTRY)
        if name not in ATTACKS and name not in _OF_NO_ATTACK:
            raise ParameterError(
                f"attack must be none or one of {', '.join(sorted(ATTACKS))}, not {name!r}"
                f"{did_you_mean(name, ATTACKS) or '; a plugin must be installed'}"
            )
        return name

    def model_post_init(self, context: Any, /) -> None:
        """Raise ParameterError for options or a model that the attack does not have."""
        if self.targets is not None and not self.targeted:
            raise ParameterError(f"targets does not belong to {self.name}")
        if self.malicious:
            self.make((0,) if self.targeted else None)

    def __str__(self) -> str:
        """Return the label, or name, kind and number of attackers, and other options as JSON."""
        return self.label or self._stated

    @property
    def _stated(self) -> str:
        short = {"name", "model", "kind", "attackers", "label", "code"}
        options = self.model_dump(exclude=short, exclude_none=True)
        kind = f"-{self.kind}" if self.kind else ""
        several = f"-x{self.attackers}" if self.attackers != 1 else ""
        rest = f" {json.dumps(options, sort_keys=True, ensure_ascii=False)}" if options else ""
        return f"{self.name}{kind}{several}{rest}"

    @property
    def drawn(self) -> str:
        """The text that seeds depend on: without a label or the name of a function or object."""
        return self._stated.removeprefix(self.name) if ":" in self.name else self._stated

    @property
    def malicious(self) -> bool:
        """Whether it is an attack, and not "none" or "honest"."""
        return self.name in ATTACKS

    @property
    def targeted(self) -> bool:
        """Whether the attack has targets."""
        return self.malicious and "targets" in attack_options(self.name)

    def make(self, targets: tuple[int, ...] | None) -> Attack:
        """Return the attack with these targets, its reports in this model.

        The model "one-hot" has no reports, and becomes "sampled".
        """
        options = self.model_dump(exclude={"name", "model", "targets", "label", "code"})
        modelled = "model" in attack_options(self.name)
        models = REPORT_MODELS if modelled else ("crafted", "input")
        if self.model not in models:
            raise ParameterError(
                f"the model of {self.name} must be one of {', '.join(models)}, not {self.model!r}"
            )
        if modelled and self.model != "input":
            options["model"] = "crafted" if self.model == "crafted" else "sampled"
        return make_attack(
            self.name, targets=targets, input_poisoning=self.model == "input", **options
        )


def _title(fields: dict[str, Any]) -> str:
    defaults = MethodSpec.model_fields
    own = {"method", "code"}
    stated = [f"{k} {v}" for k, v in fields.items() if k not in own and v != defaults[k].default]
    return f"{fields['method']} ({', '.join(stated)})" if stated else str(fields["method"])


class MethodSpec(StrictModel):
    """A method of METHODS, or by "module:name", and its knowledge of the attack.

    `eta` None is the one of the run, "true" the round's own m/n. With `targets` the method knows
    the attacked items. With `support` it knows the true share of malicious reports that supports
    each item (the malicious model custom). `reads` False withholds the reports; `history` gives it
    an earlier clean round. `name` is by default the method, with what else is stated. `code` is the
    SHA-256 of the file of a module. Raises ParameterError.

        MethodSpec(method="ldprecover", eta=0.05, targets=True, name="told")
    """

    owner: ClassVar[str] = "a method"
    short = (str, Method, Callable)
    method: Annotated[str, BeforeValidator(name_of)]
    eta: float | str | None = None
    targets: bool = False
    malicious_model: str = "paper"
    support: bool = False
    options: dict[str, float | str] = Field(default={})
    reads: bool = True
    history: bool = False
    code: str | None = Field(default_factory=lambda data: module_hash(data["method"]))
    name: str = Field(default_factory=_title)

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        ensure(method, METHOD_REGISTRY)
        if method not in METHODS:
            raise ParameterError(f"there is no method {method!r}{suggestion(method, METHODS)}")
        return method

    def model_post_init(self, context: Any, /) -> None:
        """Raise ParameterError for options that the method does not have."""
        method = METHODS[self.method]
        method.checked(self.options)
        if ":" in self.method and not method.uses and (self.targets or self.eta is not None):
            raise ParameterError(f"{self.method} is a function, which is given no eta or targets")
        if self.eta not in (None, "true"):
            RecoveryRequest("ldprecover", eta=self.eta)  # raises for an eta outside its range

    @property
    def reads_reports(self) -> bool:
        """Whether the method uses the reports if they are kept."""
        method = METHODS[self.method]
        return "reports" in method.needs or (self.reads and "reports" in method.better_with)


class DataFile(StrictModel):
    """A data file of a study, and how `dataset_of` reads it."""

    owner: ClassVar[str] = "data"
    file: str
    column: str | None = None
    encoding: str = "utf-8"
    as_is: bool = False
    least: int = 1


def dataset_in(folder: Path, source: Any) -> Dataset:
    """Return the data set of a source; files are relative to the folder. Raises DatasetError."""
    if isinstance(source, Mapping) and any(isinstance(each, str) for each in source.values()):
        file = DataFile.of_mapping(source)
        options = file.model_dump(exclude={"file"})
        return dataset_of(folder / file.file, **options)
    if isinstance(source, tuple):
        return dataset_of(*source)
    if isinstance(source, str) and source not in NAMES:
        return dataset_of(folder / source)
    return dataset_of(source)

"""An attack as the text in a cell, which says what was played: mga, aa-peaked-x5, apa {"each": 4}."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ldprecover import ParameterError
from ldprecover_attacker import ATTACKS, Attack, attack_options, make_attack
from ldprecover_experiments.setting import TARGETS

__all__ = ["REPORT_MODELS", "AttackSpec"]

REPORT_MODELS = ("crafted", "input", "one-hot", "sampled")
"""How a malicious report can be made: see Cell."""

_OPTIONS = r"(?:-(diffuse|peaked))?(?:-x(\d+))?(?: (\{.*\}))?"


@dataclass(frozen=True)
class AttackSpec:
    """An attack by name, with the kind of AA, the number of attackers, and its other options.

    The option `targets` is the number of targets, drawn anew in each trial (10 when absent), or their labels.
    """

    name: str
    kind: str | None = None
    attackers: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the attack of a cell's text. Raises ParameterError."""
        names = "|".join(map(re.escape, sorted(ATTACKS, key=len, reverse=True)))  # mga-a before mga
        found = re.fullmatch(f"({names}){_OPTIONS}", text)
        if found is None:
            raise ParameterError(f"attack must be one of {', '.join(sorted(ATTACKS))}, not {text!r}")
        name, kind, attackers, options = found.groups()
        return cls(name, kind, int(attackers or 1), json.loads(options or "{}"))

    def __str__(self) -> str:
        kind = f"-{self.kind}" if self.kind else ""
        several = f"-x{self.attackers}" if self.attackers != 1 else ""
        options = f" {json.dumps(dict(self.options), sort_keys=True, ensure_ascii=False)}" if self.options else ""
        return f"{self.name}{kind}{several}{options}"

    @property
    def targeted(self) -> bool:
        """Whether the attack has targets."""
        return "targets" in attack_options(self.name)

    @property
    def targets(self) -> int | tuple[str, ...]:
        """How many targets it has, or which."""
        given = self.options.get("targets", TARGETS)
        return given if isinstance(given, int) else tuple(given)

    def make(self, model: str, targets: tuple[int, ...] | None) -> Attack:
        """Return the attack with these targets, its reports in this model.

        Of the models that have no reports of their own, "one-hot" is made as "sampled". Raises ParameterError
        for options that do not belong to the attack, and a model that it does not have.
        """
        options = {name: value for name, value in self.options.items() if name != "targets"}
        modelled = "model" in attack_options(self.name)
        if model not in REPORT_MODELS or not (modelled or model in ("crafted", "input")):
            its = REPORT_MODELS if modelled else ("crafted", "input")
            raise ParameterError(f"the model of {self.name} must be one of {', '.join(its)}, not {model!r}")
        if modelled and model != "input":
            options["model"] = "crafted" if model == "crafted" else "sampled"
        return make_attack(
            self.name,
            kind=self.kind,
            targets=targets,
            attackers=self.attackers,
            input_poisoning=model == "input",
            **options,
        )

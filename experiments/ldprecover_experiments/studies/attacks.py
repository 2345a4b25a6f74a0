"""Attacks and their texts: mga, aa-peaked-x5, apa {"each": 4}."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ldprecover import ParameterError
from ldprecover_attacker import ATTACKS, Attack, attack_options, make_attack

TARGETS = 10
"""The paper's number r of targets (VI-A)."""

REPORT_MODELS = ("crafted", "input", "one-hot", "sampled")
"""The ways to make a malicious report: see Cell."""

_OPTIONS = r"(?:-(diffuse|peaked))?(?:-x(\d+))?(?: (\{.*\}))?"


@dataclass(frozen=True)
class AttackSpec:
    """An attack by name, with the kind of AA, the number of attackers, and its other options.

    The option `targets` is the number of targets, which each trial draws (default 10), or their
    labels.

        AttackSpec.of("apa", targets=5, each=2)
    """

    name: str
    kind: str | None = None
    attackers: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        # Equal options may differ in text: 1 and 1.0.
        return hash((self.name, self.kind, self.attackers))

    @classmethod
    def of(cls, name: str, kind: str | None = None, attackers: int = 1, **options: Any) -> Self:
        """Return the attack of these fields; `options` are its other ones."""
        return cls(name, kind, attackers, options)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the attack of this text. Raises ParameterError."""
        names = "|".join(map(re.escape, sorted(ATTACKS, key=len, reverse=True)))  # mga-a before mga
        match = re.fullmatch(f"({names}){_OPTIONS}", text)
        if match is None:
            raise ParameterError(
                f"attack must be one of {', '.join(sorted(ATTACKS))}, not {text!r}"
            )
        name, kind, attackers, options = match.groups()
        return cls(name, kind, int(attackers or 1), json.loads(options or "{}"))

    def __str__(self) -> str:
        kind = f"-{self.kind}" if self.kind else ""
        several = f"-x{self.attackers}" if self.attackers != 1 else ""
        options = (
            f" {json.dumps(dict(self.options), sort_keys=True, ensure_ascii=False)}"
            if self.options
            else ""
        )
        return f"{self.name}{kind}{several}{options}"

    @property
    def targeted(self) -> bool:
        """Whether the attack has targets."""
        return "targets" in attack_options(self.name)

    @property
    def targets(self) -> int | tuple[str, ...]:
        """The number of targets, or their labels."""
        stated = self.options.get("targets", TARGETS)
        return stated if isinstance(stated, int) else tuple(stated)

    def make(self, model: str, targets: tuple[int, ...] | None) -> Attack:
        """Return the attack with these targets, its reports in this model.

        The model "one-hot" has no reports, and becomes "sampled". Raises ParameterError for options
        or a model that the attack does not have.
        """
        options = {n: value for n, value in self.options.items() if n != "targets"}
        modelled = "model" in attack_options(self.name)
        models = REPORT_MODELS if modelled else ("crafted", "input")
        if model not in models:
            raise ParameterError(
                f"the model of {self.name} must be one of {', '.join(models)}, not {model!r}"
            )
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


def parse(text: str) -> AttackSpec | None:
    """Return the attack of a text, None for "none" and "honest". Raises ParameterError."""
    return None if text in ("none", "honest") else AttackSpec.parse(text)

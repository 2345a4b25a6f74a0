"""Attacks and their texts: mga, aa-peaked-x5, apa {"each": 4}, or a mix of these."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ldprecover import ParameterError
from ldprecover_attacker import ATTACKS, Attack, Several, attack_options, make_attack

TARGETS = 10
"""The paper's number r of targets (VI-A)."""

REPORT_MODELS = ("crafted", "input", "one-hot", "sampled")
"""The ways to make a malicious report: see Cell."""

_OPTIONS = r"(?:-(diffuse|peaked))?(?:-x(\d+))?(?: (\{.*\}))?"


@dataclass(frozen=True)
class AttackSpec:
    """An attack by name, with the kind of AA, the number of attackers, and its other options.

    The option `targets` is the number of targets, which each trial draws (default 10), or their
    labels. `sets` is the number of attackers among whom the targets are divided.

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
    def specs(self) -> tuple[Self, ...]:
        """The attack itself, as `Mix.specs`."""
        return (self,)

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
        sets = self.options.get("sets", 1)
        if sets != 1:
            one = replace(self, options={**self.options, "sets": 1})
            return Several([one.make(model, (targets or ())[i::sets]) for i in range(sets)])
        options = {n: value for n, value in self.options.items() if n not in ("targets", "sets")}
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


@dataclass(frozen=True)
class Mix:
    """Attacks that share the malicious users; `parts` holds share, attack and model of each.

    All targeted attacks raise the targets of the first. The text is JSON after the word mix.
    """

    parts: tuple[tuple[float, AttackSpec, str], ...]

    def __str__(self) -> str:
        parts = [[share, str(spec), model] for share, spec, model in self.parts]
        return f"mix {json.dumps(parts, ensure_ascii=False)}"

    @property
    def specs(self) -> tuple[AttackSpec, ...]:
        """The attacks."""
        return tuple(spec for _, spec, _ in self.parts)

    @property
    def targeted(self) -> bool:
        """Whether one of the attacks has targets."""
        return any(spec.targeted for spec in self.specs)

    @property
    def targets(self) -> int | tuple[str, ...]:
        """The number of targets, or their labels."""
        return next((spec.targets for spec in self.specs if spec.targeted), TARGETS)

    def make(self, model: str, targets: tuple[int, ...] | None) -> Attack:
        """Return the attack with these targets. Its model is crafted. Raises ParameterError."""
        if model != "crafted":
            raise ParameterError(
                f"the model of a mix must be crafted, not {model!r}: its parts have their own"
            )
        attacks = [
            spec.make(each, targets if spec.targeted else None) for _, spec, each in self.parts
        ]
        return Several(attacks, [share for share, _, _ in self.parts])


def parse(text: str) -> AttackSpec | Mix | None:
    """Return the attack or the mix of a text, None for "none" and "honest".

    Raises ParameterError.
    """
    if text in ("none", "honest"):
        return None
    if not text.startswith("mix "):
        return AttackSpec.parse(text)
    try:
        parts = json.loads(text.removeprefix("mix "))
        return Mix(tuple((float(s), AttackSpec.parse(name), model) for s, name, model in parts))
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"a mix is a list of shares, attacks and models, not {text!r:.80}"
        ) from error

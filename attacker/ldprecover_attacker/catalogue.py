"""The attacks by name, for command lines and forms."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from ldprecover import ParameterError
from ldprecover._checks import check_whole, did_you_mean, plugin_hint
from ldprecover_attacker.base import Attack
from ldprecover_attacker.cancel import Cancel
from ldprecover_attacker.combined import InputPoisoning, Several
from ldprecover_attacker.mimicry import Mimicry
from ldprecover_attacker.subsets import APA, MGAA
from ldprecover_attacker.targeted import APA2, MGA, RIA, Joint
from ldprecover_attacker.untargeted import AA, MLA, RPA, Manip

ATTACKS: dict[str, type[Attack]] = {
    attack.name: attack
    for attack in (AA, APA, APA2, Cancel, Joint, MGA, MGAA, MLA, Manip, Mimicry, RIA, RPA)
}
"""Name to class."""

OPTIONS = {field.name for attack in ATTACKS.values() for field in fields(attack)}
"""The options of attacks by name."""

_OF_REPORTS = ("against", "each", "frequencies", "model", "rate", "search", "share")
"""Options of report making, which input poisoning does not have."""


def attack_options(name: str) -> dict[str, bool]:
    """Return the options of an attack, and whether each is required.

    Raises ParameterError for an unknown attack.

        attack_options("apa2")  # {'targets': True, 'rate': False, 'search': False}
    """
    if name not in ATTACKS:
        hint = plugin_hint("ldprecover.attacks", str(name))
        raise ParameterError(
            f"attack must be one of {', '.join(sorted(ATTACKS))}, not {name!r}"
            f"{hint or did_you_mean(name, ATTACKS) or '; a plugin must be installed'}"
        )
    return {field.name: field.default is MISSING for field in fields(ATTACKS[name])}


def make_attack(
    name: str, *, input_poisoning: bool = False, attackers: int = 1, **options: Any
) -> Attack:
    """Return the attack of this name; `options` are fields of its class, such as `targets`.

    An option that is None takes the attack's default.
    `input_poisoning` perturbs the attack's items honestly; `attackers` is the number of attackers
    among whom the malicious users are assigned at random, each with its own secret draw.

    Raises ParameterError for an unknown name, a missing or ill-formed option, or one that does not
    belong to the attack.

        make_attack("mga", targets=[3, 40], input_poisoning=True)
    """
    allowed = attack_options(name)
    options = {option: value for option, value in options.items() if value is not None}
    stray = sorted(options.keys() - allowed)
    if stray:
        hint = f"its options are {', '.join(sorted(allowed))}" if allowed else "it has no options"
        raise ParameterError(f"{stray[0]} does not belong to {name}; {hint}")
    missing = [option for option, needed in allowed.items() if needed and option not in options]
    if missing:
        raise ParameterError(f"{name} needs {missing[0]}")
    idle = sorted(options.keys() & _OF_REPORTS)
    if input_poisoning and idle:
        raise ParameterError(
            f"input poisoning perturbs honestly: it has neither model nor search, so no {idle[0]}"
        )
    crafted = sorted(options.keys() & {"against", "search"})
    if options.get("model") == "sampled" and crafted:
        raise ParameterError(
            f"{crafted[0]} belongs to the crafted model: a sampled report is an encoded item"
        )
    attackers = check_whole("attackers", attackers, 1)
    attack = ATTACKS[name](**options)
    if input_poisoning:
        # It raises for an attack that draws no items.
        attack = InputPoisoning(attack)  # type: ignore[arg-type]
    return attack if attackers == 1 else Several([attack] * attackers)

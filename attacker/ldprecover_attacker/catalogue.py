"""The attacks by name, for command lines and forms."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

from ldprecover import ParameterError
from ldprecover_attacker.adaptive import AA
from ldprecover_attacker.base import Attack, ItemAttack
from ldprecover_attacker.input_poisoning import InputPoisoning
from ldprecover_attacker.manip import Manip
from ldprecover_attacker.mga import MGA
from ldprecover_attacker.several import Several

__all__ = ["ATTACKS", "make_attack"]

ATTACKS: dict[str, type[Attack]] = {attack.name: attack for attack in (AA, Manip, MGA)}
"""Name to class."""


def make_attack(
    name: str,
    *,
    targets: Sequence[int | str] | None = None,
    model: str | None = None,
    search: int | Literal["exhaustive"] | None = None,
    kind: str | None = None,
    size: int | None = None,
    input_poisoning: bool = False,
    attackers: int = 1,
) -> Attack:
    """Return the attack of this name; an option left None takes the attack's default.

    `input_poisoning` perturbs the attack's items honestly; `attackers` is the number of attackers
    among whom the malicious users are assigned at random, each with its own secret draw.

    Raises ParameterError for an unknown name, a missing or ill-formed option, or one that does not
    belong to the attack.
    """
    if name not in ATTACKS:
        raise ParameterError(f"attack must be one of {', '.join(sorted(ATTACKS))}, not {name!r}")
    cls = ATTACKS[name]
    options: dict[str, Any] = {"targets": targets, "model": model, "search": search, "kind": kind, "size": size}
    options = {option: value for option, value in options.items() if value is not None}
    known = {field.name for field in fields(cls)}
    stray = sorted(set(options) - known)
    if stray:
        raise ParameterError(f"{stray[0]} does not belong to {name}; its options are {', '.join(sorted(known))}")
    if "targets" in known and "targets" not in options:
        raise ParameterError(f"{name} needs targets")
    if input_poisoning and not options.keys().isdisjoint({"model", "search"}):
        raise ParameterError("input poisoning perturbs honestly: it has neither model nor search")
    if options.get("model") == "sampled" and "search" in options:
        raise ParameterError("search belongs to the crafted model: a sampled report has a random seed")
    if isinstance(attackers, bool) or not isinstance(attackers, int) or attackers < 1:
        raise ParameterError(f"attackers must be an integer from 1, not {attackers!r}")
    attack = cls(**options)
    if input_poisoning:
        if not isinstance(attack, ItemAttack):
            raise ParameterError(f"{name} draws no items, so it has no input poisoning")
        attack = InputPoisoning(attack)
    return attack if attackers == 1 else Several([attack] * attackers)

"""The attacks and methods of a heat map."""

import tomllib
from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any

from ldprecover import FrequencyOracle
from ldprecover.recovery import METHODS
from ldprecover_experiments.attacks import TARGETS, AttackSpec, Mix
from ldprecover_experiments.measures import MethodSpec

_DOCUMENT: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("unmixing_evaluation.toml").read_text(encoding="utf-8")
)
DATA = _DOCUMENT["data"]

DRIFT = 0.1
"""Standard deviation of the log ratio of a frequency to that of the earlier round."""

ATTACKS: Mapping[str, Mapping[str, Any]] = _DOCUMENT["attacks"]
"""Name in the tables -> fields of the attack, which `attack_on` reads."""


def attack_on(
    oracle: FrequencyOracle, name: str, r: int
) -> tuple[AttackSpec | Mix | None, str] | None:
    """Return the attack and the model of a cell; None for a protocol without such an attack."""
    fields = {"model": "crafted", "lacks": "", "one_item": (), **ATTACKS[name]}
    model, lacks, mix = (fields.pop(key) for key in ("model", "lacks", "one_item"))
    one_item = oracle.traits.one_item
    if mix and one_item:
        parts = ((share, *(attack_on(oracle, part, r) or ())) for share, part in mix)
        return Mix(tuple(parts)), model
    padded = oracle.crafter is not None and oracle.crafter.model == "padded"
    if (lacks == "one-item" and one_item) or (lacks == "unpadded" and not padded):
        return None
    numbers = {"r": r, "2r": 2 * r, "r/2": (r + 1) // 2}
    stated = {key: numbers.get(value, value) for key, value in fields.items()}
    for key in ("targets", "size"):
        if stated.get(key) == TARGETS:  # the default
            del stated[key]
    return AttackSpec.of(**stated) if stated else None, model


def methods(named: Collection[str] = ()) -> list[MethodSpec]:
    """Return the methods to compare: all, or the named ones with LDPRecover and Norm-Sub."""
    specs = [
        MethodSpec("ldprecover"),
        MethodSpec("ldprecover true eta", eta="true"),
        MethodSpec("ldprecover*", targets=True),
    ]
    for name, method in METHODS.items():
        if name == "unmix":
            specs.append(MethodSpec("unmix counts", name, reads=False))
            specs.append(MethodSpec("unmix", name))
            specs.append(MethodSpec("unmix targets", name, targets=True))
            specs.append(MethodSpec("unmix history", name, history=True))
        elif (
            name != "ldprecover"
            and name not in _DOCUMENT["excluded"]
            and not name.endswith("-unprojected")
        ):
            specs.append(MethodSpec(name, method.name))
    chosen = {"ldprecover", "norm-sub", *named}
    return [spec for spec in specs if not named or spec.name in chosen]

"""Attacks by name, as a command line asks for them."""

from typing import Any

import pytest

import ldprecover_attacker
from ldprecover import ParameterError
from ldprecover_attacker import (
    ATTACKS,
    MGA,
    MGAA,
    MLA,
    Attack,
    InputPoisoning,
    Manip,
    Several,
    attack_options,
    make_attack,
)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("mga", {"targets": [1, "b"]}, MGA([1, "b"])),
        (
            "mga",
            {"targets": [1], "model": "sampled", "size": None, "kind": None},
            MGA([1], model="sampled"),
        ),
        ("mga-a", {"targets": [1, 2], "each": 1, "search": 7}, MGAA([1, 2], 1, search=7)),
        ("mla", {}, MLA()),
        (
            "manip",
            {"attackers": 2, "input_poisoning": True},
            Several([InputPoisoning(Manip())] * 2),
        ),
    ],
)
def test_a_name_and_options_make_the_attack(
    name: str, options: dict[str, Any], expected: Attack
) -> None:
    assert make_attack(name, **options) == expected


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "mpa",
            {},
            "one of aa, apa, apa2, cancel, joint, manip, mga, mga-a, mimicry, mla, ria, rpa, not",
        ),
        ("mga", {}, "mga needs targets"),
        (
            "mga",
            {"targets": [1], "size": 4},
            "size does not belong to mga; its options are against, model, search, targets",
        ),
        ("aa", {"size": 5}, "size belongs to the peaked kind"),
        ("aa", {"kind": "spiky"}, "kind must be one of diffuse, peaked"),
        (
            "mga",
            {"targets": [1], "model": "sampled", "input_poisoning": True},
            "neither model nor search",
        ),
        (
            "mga",
            {"targets": [1], "search": 9, "model": "sampled"},
            "search belongs to the crafted model",
        ),
        ("rpa", {"size": 3}, "size does not belong to rpa; it has no options"),
        (
            "apa",
            {"targets": [1], "search": "exhaustive"},
            "a number of seeds from 1 to 1000000, not 'exhaustive'",
        ),
        (
            "apa2",
            {"targets": [1], "rate": 1.0},
            "rate, the probability to support a target, must be between 0 and 1",
        ),
        (
            "apa2",
            {"targets": [1], "rate": 0.3, "input_poisoning": True},
            "neither model nor search, so no rate",
        ),
        ("joint", {"targets": [1], "rate": 1.5}, "must be from 0 to 1, not 1.5"),
        ("joint", {"targets": [1, 2], "item": 2}, "item must not be a target, and 2 is one"),
        ("mimicry", {"targets": [1], "share": 0}, "share must be above 0 and below 1, not 0"),
        ("mla", {"against": "nobody"}, "against must be one of projected, raw"),
        ("aa", {"attackers": 0}, "attackers must be an integer from 1"),
    ],
)
def test_rejects_options_of_other_attacks(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_attack(name, **options)


def test_options_state_which_are_required() -> None:
    assert attack_options("rpa") == {}
    assert attack_options("ria") == {"targets": True}
    assert attack_options("apa2") == {"targets": True, "rate": False, "search": False}


def test_every_attack_with_a_name_is_public() -> None:
    for name, attack in ATTACKS.items():
        assert attack.name == name
        assert attack.__name__ in ldprecover_attacker.__all__

"""Attacks on a protocol without a crafter: only attacks that an honest client can make work."""

import numpy as np
import pytest
from tests.toy_protocols import Bare

from ldprecover import ParameterError
from ldprecover_attacker import (
    AA,
    ATTACKS,
    MGA,
    Attack,
    InputPoisoning,
    Manip,
    Several,
    attack_options,
    make_attack,
)

ORACLE = Bare(0.5, 20)
SAMPLED = [MGA([1, 2], model="sampled"), Manip(model="sampled"), AA(model="sampled")]


def rng() -> np.random.Generator:
    return np.random.default_rng(2)


def of_name(name: str) -> Attack:
    return make_attack(name, targets=[1, 2] if "targets" in attack_options(name) else None)


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - {"ria"}))
def test_crafted_attack_names_the_protocol_without_crafter(name: str) -> None:
    for attack in (of_name(name), Several([of_name(name), of_name("ria")])):
        with pytest.raises(ParameterError, match=r"^bare lacks .*reports"):
            attack.reports(ORACLE, 10, rng())
        with pytest.raises(ParameterError, match=r"^bare lacks .*reports"):
            attack.support(ORACLE, rng())


@pytest.mark.parametrize(
    "attack",
    [of_name("ria"), *(InputPoisoning(of_name(name)) for name in ATTACKS)],  # type: ignore[arg-type]
    ids=repr,
)
def test_lying_about_the_value_alone_needs_no_crafting(attack: Attack) -> None:
    assert len(attack.reports(ORACLE, 10, rng())) == 10
    assert attack.support(ORACLE, rng()).shape == (20,)


@pytest.mark.parametrize("attack", SAMPLED, ids=repr)
def test_encoded_items_travel_without_a_support_law(attack: Attack) -> None:
    assert len(attack.reports(ORACLE, 10, rng())) == 10
    with pytest.raises(ParameterError, match=r"^bare lacks a law of encoded reports"):
        attack.support(ORACLE, rng())

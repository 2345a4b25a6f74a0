"""Attacks on a protocol without a crafter: a search among encoded items makes their reports."""

import numpy as np
import pytest
from tests.randomness import rng
from tests.toy_protocols import Bare, BareOLH

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


def of_name(name: str) -> Attack:
    return make_attack(name, targets=[1, 2] if "targets" in attack_options(name) else None)


@pytest.mark.parametrize("name", ["rpa", "apa2", "cancel", "joint"])
def test_attack_beyond_encoded_items_names_the_protocol(name: str) -> None:
    for attack in (of_name(name), Several([of_name(name), of_name("ria")])):
        with pytest.raises(ParameterError, match=r"^bare lacks .*reports"):
            attack.reports(ORACLE, 10, rng())
        with pytest.raises(ParameterError, match=r"^bare lacks .*reports"):
            attack.support(ORACLE, rng())


@pytest.mark.parametrize(
    "attack",
    [
        of_name("ria"),
        *(InputPoisoning(of_name(name)) for name in ATTACKS),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_lying_about_the_value_alone_needs_no_crafting(attack: Attack) -> None:
    assert len(attack.reports(ORACLE, 10, rng())) == 10
    assert attack.support(ORACLE, rng()).shape == (20,)


@pytest.mark.parametrize("attack", [*SAMPLED, of_name("mga"), of_name("mga-a")], ids=repr)
def test_encoded_items_have_an_estimated_support(attack: Attack) -> None:
    reports, support = attack.reports(ORACLE, 4000, rng()), attack.support(ORACLE, rng())
    share = ORACLE.support_counts(reports) / 4000
    np.testing.assert_allclose(share, support, rtol=0, atol=0.05)


def test_search_supports_more_targets_than_encoding_one() -> None:
    """Each OLH report that encodes a target supports another with probability 1/g."""
    oracle = BareOLH(1.0, 20, 4)
    crafted, sampled = (
        MGA([1, 2, 3, 4], model=model).support(oracle, rng())[1:5].sum()
        for model in ("crafted", "sampled")
    )
    assert sampled == pytest.approx(1 + 3 / 4, abs=0.05)
    assert crafted > 3
    reports = MGA([1, 2, 3, 4]).reports(oracle, 2000, rng())
    hits = oracle.supports(reports, np.arange(1, 5)).sum(axis=1).mean()
    assert hits == pytest.approx(crafted, abs=0.1)

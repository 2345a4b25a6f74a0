"""MGA's targets and options."""

from typing import Any

import numpy as np
import pytest

from ldprecover import OLH, OUE, ParameterError
from ldprecover_attacker import APA, APA2, MGA, MGAA, RIA
from ldprecover_attacker.targeted import TargetedAttack

ITEMS = ["Lisbon", "Porto", "Braga", "5", "Faro"]


def rng(seed: int = 2) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_targets_may_be_labels_or_indices_and_repeats_merge() -> None:
    targets: list[Any] = ["Faro", 1, np.int64(1), "Faro", "Porto"]
    attack = MGA(targets)
    assert attack.targets == ("Faro", 1, "Porto")
    assert attack.resolve(ITEMS).targets == (4, 1)


def test_number_is_an_index_and_string_a_label() -> None:
    assert MGA([2, "5"]).resolve(ITEMS).targets == (2, 3)


def test_resolving_keeps_model_and_search() -> None:
    assert MGA(["Faro"], model="sampled", search=5).resolve(ITEMS) == MGA(
        [4], model="sampled", search=5
    )


@pytest.mark.parametrize("targets", [[], (), [-1], [True], [1.0], [""], [None], "Faro"])
def test_rejects_invalid_targets(targets: object) -> None:
    with pytest.raises(ParameterError, match="target"):
        MGA(targets)  # type: ignore[arg-type]


def test_rejects_target_outside_the_domain() -> None:
    with pytest.raises(ParameterError, match="no item is labelled 'Madrid'"):
        MGA(["Madrid"]).resolve(ITEMS)
    with pytest.raises(ParameterError, match="5 is not an index from 0 to 4"):
        MGA([5]).resolve(ITEMS)


@pytest.mark.parametrize("attack", [MGA, MGAA, APA, APA2, RIA])
def test_reports_need_targets_inside_the_domain(attack: type[TargetedAttack]) -> None:
    for targets, reason in (([0, 5], "from 0 to 4, not 5"), (["Faro"], "'Faro' is a label")):
        with pytest.raises(ParameterError, match=reason):
            attack(targets).reports(OLH(1.0, 5, 4), 10, rng())


def test_every_item_may_be_a_target() -> None:
    reports = MGA(range(5)).reports(OUE(1.0, 5), 3, rng())
    assert OUE(1.0, 5).supports(reports).all()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("one-hot", "one-hot OLH report cannot travel"),
        ("Crafted", "model must be one of crafted, sampled"),
        (None, "model must be one of crafted, sampled"),
    ],
)
def test_rejects_another_model(model: Any, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        MGA([1], model=model)


def test_rejects_invalid_search() -> None:
    with pytest.raises(ParameterError, match="search must be"):
        MGA([1], search=0)

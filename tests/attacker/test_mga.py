"""MGA's targets and options."""

from typing import Any

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover_attacker import MGA

ITEMS = ["Lisbon", "Porto", "Braga", "5", "Faro"]


def rng(seed: int = 2) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_targets_may_be_labels_or_indices_and_repeats_merge() -> None:
    targets: list[Any] = ["Faro", 1, np.int64(1), "Faro", "Porto"]
    attack = MGA(targets)
    assert attack.targets == ("Faro", 1, "Porto")
    assert attack.resolve(ITEMS).targets == (4, 1)


def test_a_number_is_an_index_and_a_string_a_label() -> None:
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


@pytest.mark.parametrize("oracle", [GRR(1.0, 5), OUE(1.0, 5), OLH(1.0, 5, 4)], ids=repr)
@pytest.mark.parametrize("model", ["crafted", "sampled"])
def test_reports_need_targets_inside_the_domain(oracle: FrequencyOracle, model: str) -> None:
    with pytest.raises(ParameterError, match="from 0 to 4, not 5"):
        MGA([0, 5], model=model).reports(oracle, 10, rng())
    with pytest.raises(ParameterError, match="'Faro' is a label"):
        MGA(["Faro"], model=model).reports(oracle, 10, rng())


def test_every_item_may_be_a_target() -> None:
    reports = MGA(range(5)).reports(OUE(1.0, 5), 3, rng())
    assert OUE(1.0, 5).supports(reports).all()


def test_a_one_hot_olh_report_is_refused_with_its_reason() -> None:
    with pytest.raises(ParameterError, match="one-hot OLH report cannot travel"):
        MGA([1], model="one-hot")


@pytest.mark.parametrize("model", ["Crafted", "", None, 3])
def test_another_model_is_refused(model: object) -> None:
    with pytest.raises(ParameterError, match="model must be one of crafted, sampled"):
        MGA([1], model=model)  # type: ignore[arg-type]


def test_the_search_is_checked() -> None:
    with pytest.raises(ParameterError, match="search must be"):
        MGA([1], search=0)


@pytest.mark.parametrize("oracle", [GRR(0.5, 30), OUE(0.5, 30), OLH(0.5, 30, 3)], ids=repr)
def test_a_sampled_report_supports_a_target_drawn_uniformly(oracle: FrequencyOracle) -> None:
    """Among reports that support one target, each of four has a quarter of 20,000 users, to 6 sd
    (8e-9).
    """
    m, targets = 20_000, [3, 29, 0, 11]
    supports = oracle.supports(MGA(targets, model="sampled").reports(oracle, m, rng()))[:, targets]
    assert supports.any(axis=1).all()
    alone = supports[supports.sum(axis=1) == 1]
    n = len(alone)
    assert n > m / 4
    assert np.abs(alone.sum(axis=0) - n / 4).max() <= 6 * (n * 3 / 16) ** 0.5


def test_more_seeds_put_more_targets_into_a_bucket() -> None:
    """Mean hits of 2,000 users rise by 0.3 and more at each step, at least 10 sd of a mean."""
    oracle, targets = OLH(0.5, 102, 3), list(range(10))
    hits = [
        oracle.supports(MGA(targets, search=search).reports(oracle, 2_000, rng()))[:, targets]
        .sum(axis=1)
        .mean()
        for search in (1, 10, 100, 1_000, "exhaustive")
    ]
    assert min(np.diff(hits)) > 0.3
    assert hits[-1] == 10

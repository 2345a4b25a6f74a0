"""The distributions that Manip and AA draw their items from, and what is sent of them."""

from typing import Any

import numpy as np
import pytest
from tests.randomness import rng

from ldprecover import GRR, OUE, ParameterError
from ldprecover_attacker import AA, MGA, InputPoisoning, Manip, Several


@pytest.mark.parametrize(
    ("size", "d", "expected"), [(None, 40, 20), (None, 41, 21), (None, 2, 1), (40, 40, 40)]
)
def test_manip_is_uniform_on_half_the_items_by_default(
    size: int | None, d: int, expected: int
) -> None:
    weights = Manip(size).distribution(d, rng())
    assert sorted(weights)[-expected:] == [1 / expected] * expected
    assert np.count_nonzero(weights) == expected
    assert Manip(size).resolve([str(i) for i in range(d)]).size == expected


def test_diffuse_distribution_has_uniform_weights() -> None:
    """w / max(w) of 20,000 items is close to U(0, 1): Kolmogorov-Smirnov distance below 0.025 (P <
    1e-10).
    """
    weights = AA().distribution(20_000, rng())
    assert weights.min() > 0
    ranks = np.sort(weights / weights.max())
    assert np.abs(ranks - np.arange(1, 20_001) / 20_000).max() < 0.025


@pytest.mark.parametrize(
    ("size", "d", "expected"), [(None, 40, 10), (None, 6, 6), (3, 40, 3), (40, 40, 40)]
)
def test_peaked_distribution_has_ten_items_by_default(
    size: int | None, d: int, expected: int
) -> None:
    attack = AA("peaked", size)
    weights = attack.distribution(d, rng())
    assert np.count_nonzero(weights) == expected
    assert np.unique(weights[weights > 0]).size == expected
    assert attack.resolve([str(i) for i in range(d)]).size == expected


@pytest.mark.parametrize("size", [0, -3, 2.5, True, "4"])
def test_rejects_invalid_size(size: Any) -> None:
    for make in (Manip, lambda size: AA("peaked", size)):
        with pytest.raises(ParameterError, match="integer from 1"):
            make(size)


def test_rejects_size_above_the_domain() -> None:
    for attack in (Manip(41), AA("peaked", 41)):
        with pytest.raises(ParameterError, match="from 1 to 40, not 41"):
            attack.resolve([str(i) for i in range(40)])
        with pytest.raises(ParameterError, match="from 1 to 40, not 41"):
            attack.reports(GRR(1.0, 40), 5, rng())


def test_input_poisoning_ignores_the_report_model() -> None:
    oracle = OUE(0.5, 40)
    crafted, sampled = (
        InputPoisoning(MGA([1, 2], model=m)).reports(oracle, 100, rng())
        for m in ("crafted", "sampled")
    )
    assert np.array_equal(crafted, sampled)


def test_input_poisoning_needs_an_attack_that_draws_items() -> None:
    with pytest.raises(ParameterError, match="draws items"):
        InputPoisoning(Several([AA()]))  # type: ignore[arg-type]

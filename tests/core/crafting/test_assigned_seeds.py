"""Reports crafted under assigned seeds: what they support, and what they gain."""

import numpy as np
import pytest

from ldprecover import ParameterError
from ldprecover.crafting.crafter import Aim
from ldprecover.protocols import LLH, crafter_of
from ldprecover.testing.tolerances import assert_counts

BETA, D, M = 0.05, 102, 40_000
ITEMS = np.array([0, 3, 8, 9, 20, 29])


def assigned(epsilon: float, d: int, g: int) -> LLH:
    return LLH(epsilon, d, g, assigned_seeds=True)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def gain(oracle: LLH, targets: np.ndarray) -> float:
    included = np.zeros(oracle.domain_size)
    included[targets] = 1.0
    support = crafter_of(oracle).crafted_support(included, targets.size)
    return float(BETA * oracle.estimate(support, 1)[targets].sum())


@pytest.mark.parametrize(
    ("epsilon", "g", "expected"),
    [
        (0.5, 2, (0.204, 0.306, 0.494, 0.810)),
        (0.5, 3, (0.281, 0.373, 0.664, 1.058)),
        (1.0, 2, (0.108, 0.162, 0.261, 0.431)),
        (1.0, 3, (0.137, 0.183, 0.322, 0.516)),
        (2.0, 2, (0.066, 0.098, 0.159, 0.261)),
    ],
)
def test_gain_for_random_targets(epsilon: float, g: int, expected: tuple[float, ...]) -> None:
    """The means over 100 sets: within 1 %, some four standard errors."""
    oracle, draws = assigned(epsilon, D, g), rng()
    for r, mean in zip((1, 3, 10, 30), expected, strict=True):
        gains = [gain(oracle, draws.choice(D, r, replace=False)) for _ in range(100)]
        assert np.mean(gains) == pytest.approx(mean, rel=0.01), r
        if g == 2:
            assert max(gains) <= BETA / np.tanh(epsilon / 2) * np.sqrt(r) * (1 + 1e-9)


@pytest.mark.parametrize("aim", ["most", "projected", "balanced", "honest"])
@pytest.mark.parametrize("r", [1, 3, 6])
@pytest.mark.parametrize("g", [2, 3, 5])
def test_support_is_exact(aim: Aim, r: int, g: int) -> None:
    oracle = assigned(1.0, 30, g)
    chosen_items = ITEMS[rng().random((M, ITEMS.size)).argsort(axis=1)[:, :r]]
    included = np.zeros(30)
    included[ITEMS] = r / ITEMS.size
    reports = crafter_of(oracle).craft(chosen_items, rng(2), aim=aim)
    support = crafter_of(oracle).crafted_support(included, r, aim=aim)
    assert_counts(oracle.support_counts(reports), support, M)


@pytest.mark.parametrize("g", [2, 3, 5])
def test_best_bucket_is_chosen_under_every_seed(g: int) -> None:
    oracle = assigned(1.0, 30, g)
    seeds = np.repeat(np.arange(oracle.seed_count), 200)
    crafter = crafter_of(oracle.with_seeds(seeds))
    reports = crafter.craft(np.broadcast_to(ITEMS, (seeds.size, ITEMS.size)), rng())
    assert oracle.seeds(reports).tolist() == seeds.tolist()
    hits = np.array(
        [
            np.bincount(oracle.buckets(np.array(seed), ITEMS), minlength=g)
            for seed in range(oracle.seed_count)
        ]
    )
    best = np.flatnonzero(hits == hits.max(axis=1, keepdims=True))
    # A bucket of a seed is missed with a probability of at most (1 - 1/g)^200 < 1e-19.
    assert np.unique(reports).tolist() == best.tolist()


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_coins_have_exact_support(rate: float) -> None:
    oracle = assigned(1.0, 30, 3)
    craft, support = crafter_of(oracle).coin_reports(ITEMS, rate)
    assert_counts(oracle.support_counts(craft(M, rng())), support(M), M)


def test_uniform_reports_have_assigned_seeds() -> None:
    oracle = assigned(1.0, 30, 3)
    seeds = rng().integers(oracle.seed_count, size=M)
    uniform = crafter_of(oracle.with_seeds(seeds)).uniform_reports(M, rng(2))
    assert oracle.seeds(uniform).tolist() == seeds.tolist()
    assert_counts(oracle.support_counts(uniform)[1:], np.full(29, 1 / 3), M)


def test_unknown_support_and_a_common_report_are_rejected() -> None:
    crafter = crafter_of(assigned(1.0, 30, 3))
    with pytest.raises(ParameterError, match="15 of 30 items, of which there are too many"):
        crafter.crafted_support(np.full(30, 0.5), 15)
    with pytest.raises(ParameterError, match="llh lacks reports crafted for a size"):
        crafter.report_of_size(5, rng())

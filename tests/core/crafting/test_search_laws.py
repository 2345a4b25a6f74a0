"""What a search for seeds finds, against every outcome of an ideal hash counted one by one."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from ldprecover import OLH
from ldprecover.crafting.search_laws import exhaustive_hits, law_near, most_hits, sized_means
from ldprecover.crafting.size_search import sized_seeds, worth
from ldprecover.distributions import binomial_law
from ldprecover.protocols.olh import SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("d", [30, 102])
@pytest.mark.parametrize("law", [True, False], ids=["honest", "balanced"])
def test_simulated_means_are_within_one_percent(d: int, law: bool) -> None:
    """Of 20,000 users of other seeds: 1 % is more than six standard errors of the difference.

    1.4 % are missed once in 100.
    """
    oracle, m, r, budget = OLH(0.5, d, 3), 20_000, 5, 100
    rng = np.random.default_rng(11)
    sizes = oracle.laws.size_law()
    aims = sizes.draw(m, rng) if law else np.full(m, d // 3)
    chosen_items = np.tile(np.arange(r, dtype=np.uint32), (m, 1))
    seeds, buckets = sized_seeds(chosen_items, aims, d, 3, budget, rng, exact=law)
    supports = oracle.supports(oracle.reports(seeds, buckets))
    measured = supports[:, :r].sum(axis=1).mean(), supports[:, r:].sum(axis=1).mean()
    simulated = sized_means(r, d, 3, budget, sizes if law else d // 3)
    assert simulated == pytest.approx(measured, rel=0.01)


@pytest.mark.parametrize("budget", [1, 3, 1_000])
@pytest.mark.parametrize(("r", "g"), [(1, 2), (4, 3), (5, 4), (6, 2), (3, 20)])
def test_plain_search_law_is_exact(r: int, g: int, budget: int) -> None:
    fullest = Counter(max(Counter(places).values()) for places in product(range(g), repeat=r))
    share = np.cumsum([fullest[h] for h in range(r + 1)]) / g**r
    expected = np.arange(r + 1) @ np.diff(share**budget, prepend=0.0)
    assert most_hits(r, g, budget) == pytest.approx(expected, abs=1e-9)


def test_perfect_seeds_of_an_exhaustive_search_run_out() -> None:
    """2^32 g^(1-r) perfect seeds are expected: 218,000 for ten items and g = 3, 16,384 for g
    = 4.
    """
    assert exhaustive_hits(10, 3, 20_520) == pytest.approx(10)
    assert exhaustive_hits(10, 3, 2 * SEEDS // 3**9) == pytest.approx(9.5, abs=1e-4)
    assert 9 < exhaustive_hits(10, 4, 20_520) < 10
    assert exhaustive_hits(10, 4, 16_384) == pytest.approx(10, abs=1e-6)


@pytest.mark.parametrize("budget", [1, 2, 7])
def test_hits_near_a_goal_follow_the_exact_law(budget: int) -> None:
    r, g = 3, 3
    weights = dict.fromkeys(product(range(r + 1), repeat=budget), 1.0)
    law = binomial_law(r, 1 / g)
    for values in weights:
        weights[values] = float(np.prod(law[list(values)]))
    for goal in range(r + 1):
        nearest = {values: min(values, key=lambda h: (abs(h - goal), h)) for values in weights}
        expected = sum(weights[values] * nearest[values] for values in weights)
        mean = law_near(r, g, budget, goal) @ np.arange(r + 1)
        assert mean == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("exact", [False, True])
def test_a_search_finds_the_bucket_that_is_worth_most(exact: bool) -> None:
    """Against every bucket of every seed that the generator gives."""
    d, g, budget, m = 30, 4, 25, 60
    rng = np.random.default_rng(3)
    chosen_items = np.stack([rng.choice(d, 4, replace=False) for _ in range(m)]).astype(np.uint32)
    aims = rng.integers(0, d, m)
    tried = np.random.default_rng(8).integers(0, SEEDS, size=(m, budget), dtype=np.uint32)
    seeds, buckets = sized_seeds(
        chosen_items, aims, d, g, budget, np.random.default_rng(8), exact=exact
    )
    oracle = OLH(1.0, d, g)
    places = oracle.buckets(tried[:, :, None], np.arange(d))
    for i in range(m):
        cells = {
            (int(tried[i, s]), b): (
                int((place[chosen_items[i]] == b).sum()),
                int((place == b).sum()),
            )
            for s, place in enumerate(places[i])
            for b in range(g)
        }
        value = {
            cell: int(worth(hits, np.array(size), int(aims[i]), exact=exact))
            for cell, (hits, size) in cells.items()
            if hits
        }
        assert value[int(seeds[i]), int(buckets[i])] == max(value.values())

"""OLH through its real hash: pairs of items, and seeds."""

import numpy as np
import pytest
from scipy import stats

from ldprecover import OLH

pytestmark = pytest.mark.statistical

D, G = 102, 3


@pytest.fixture(scope="module", params=[None, 11], ids=["operating-system", "seeded"])
def rng(request: pytest.FixtureRequest) -> np.random.Generator | None:
    return None if request.param is None else np.random.default_rng(request.param)


def test_pairs_of_other_items_are_supported_with_1_in_g_squared() -> None:
    """Pairs of the unheld items 1..40 in 100,000 reports: 780 normal scores, each two-sided at
    1e-9/780.

    Lemma 2's variance and the covariance zero between items rest on it. A pair that is supported
    8.4 % too often is missed once in 100.
    """
    oracle, n = OLH(0.5, 41, G), 100_000
    supports = oracle.supports(oracle.perturb(np.zeros(n, np.int64), np.random.default_rng(12)))[
        :, 1:
    ]
    together = supports.T.astype(np.float64) @ supports.astype(np.float64)
    pairs = together[np.triu_indices(40, 1)]
    q = 1 / G**2
    scores = (pairs - n * q) / np.sqrt(n * q * (1 - q))
    assert np.abs(scores).max() <= stats.norm.isf(1e-9 / pairs.size / 2)


def test_seeds_are_32_random_bits(rng: np.random.Generator | None) -> None:
    """2,000,000 seeds: every bit is a fair coin, and equal pairs are Poisson with mean n(n-1)/2^33
    = 466.

    32 bits and the pairs, each two-sided at 1e-9/33; 31 random bits would make twice the pairs.
    A bit that is one with .5032, or 1.42 times the pairs, is missed once in 100.
    """
    n = 2_000_000
    seeds = OLH(0.5, D, G).perturb(np.zeros(n, np.int64), rng)["seed"]
    level = 1e-9 / 33 / 2
    ones = np.array([np.count_nonzero(seeds >> np.uint32(bit) & np.uint32(1)) for bit in range(32)])
    assert stats.binom.ppf(level, n, 0.5) <= ones.min()
    assert ones.max() <= stats.binom.isf(level, n, 0.5)
    _, repeats = np.unique(seeds, return_counts=True)
    pairs = int((repeats * (repeats - 1) // 2).sum())
    expected = n * (n - 1) / 2**33
    assert stats.poisson.ppf(level, expected) <= pairs <= stats.poisson.isf(level, expected)
    assert stats.poisson.isf(level, expected) < 2 * expected - 6.6 * np.sqrt(2 * expected)

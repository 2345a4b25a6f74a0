"""OLH through its real hash and both wire forms."""

import json

import numpy as np
import pytest
from scipy import stats

from ldprecover import OLH, Tally
from ldprecover.protocols import wire

N, D, G = 400_000, 102, 3


@pytest.fixture(scope="module", params=[None, 11], ids=["operating-system", "seeded"])
def rng(request: pytest.FixtureRequest) -> np.random.Generator | None:
    return None if request.param is None else np.random.default_rng(request.param)


@pytest.mark.parametrize("form", ["packed", "json"])
def test_report_supports_its_item_with_p_and_others_with_1_in_g(
    rng: np.random.Generator | None, form: str
) -> None:
    """400,000 users of one item: 102 binomial counts, each two-sided at 1e-9/102. A false alarm in
    1e9 a run.
    """
    oracle, item = OLH(0.5, D, G), 37
    reports = oracle.perturb(np.full(N, item), rng)
    if form == "packed":
        received = oracle.wire.unpack(wire.pack(reports))
    else:
        received = oracle.wire.from_json(json.loads(json.dumps(oracle.wire.to_json(reports))))
    counts = Tally.of(oracle, received).counts(oracle)
    probability = np.full(D, 1 / G)
    probability[item] = oracle.p
    low, high = (
        stats.binom.ppf(level, N, probability) for level in (1e-9 / D / 2, 1 - 1e-9 / D / 2)
    )
    assert (low <= counts).all()
    assert (counts <= high).all()


def test_pairs_of_other_items_are_supported_with_1_in_g_squared() -> None:
    """Pairs of the unheld items 1..40 in 100,000 reports: 780 normal scores, each two-sided at
    1e-9/780.

    Lemma 2's variance and the covariance zero between items rest on it.
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

"""The bins of a histogram that honest laws do not explain."""

import numpy as np
import pytest
from scipy.optimize import nnls

from ldprecover.distributions import binomial_law
from ldprecover.protocols.laws import IndependentSizes
from ldprecover.recovery.unmixing.filters.excess import excess_bins, non_negative

BINOMIAL = binomial_law(5, 0.4)


def test_a_bin_must_be_above_the_fit_by_a_share_of_itself() -> None:
    observed = (BINOMIAL * 10**7).astype(np.int64)
    observed[2] = observed[2] * 21 // 20  # 5 % more, 90 standard deviations
    assert not excess_bins(observed, BINOMIAL[None], 0.1)[0].any()
    assert np.flatnonzero(excess_bins(observed, BINOMIAL[None], 0.03)[0]).tolist() == [2]


def test_honest_histograms_have_no_bin_that_is_too_full() -> None:
    """Six deviations above sqrt(fit + 1): less than 1e-8 a bin, so that one draw in 1000 is
    generous; a rate of one in 300 is missed once in 100.
    """
    rng, fired = np.random.default_rng(8), 0
    for _ in range(1000):
        t, q, n = int(rng.integers(3, 25)), rng.uniform(0.05, 0.5), int(rng.integers(100, 200_000))
        laws = np.stack([binomial_law(t, q), IndependentSizes(t, 0.5, q).probabilities()])
        sizes = IndependentSizes(100, 0.5, q).probabilities()[None]
        for each, least in ((laws, 0.03), (sizes, 0.1)):
            law = rng.dirichlet(np.ones(len(each))) @ each
            observed = rng.multinomial(n, law / law.sum())
            fired += bool(excess_bins(observed, each, least)[0].any())
    assert fired <= 1


@pytest.mark.parametrize("lean", [-3.0, 0.0, 0.3, 1.0, 4.0])
def test_the_fit_is_the_non_negative_least_squares_one(lean: float) -> None:
    """Against scipy, also where an unbounded fit would take one of the laws off the other."""
    laws = np.stack([binomial_law(8, 0.3), IndependentSizes(8, 0.6, 0.3).probabilities()])
    observed = np.maximum(1000 * (laws[0] + lean * (laws[1] - laws[0])), 0)
    parts, _ = nnls(laws.T, observed)
    assert non_negative(observed, laws) == pytest.approx(parts, rel=1e-9)

"""What is un-mixed: the noise of estimates given who holds what."""

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle
from ldprecover.recovery.unmixing import estimates_of_counts
from ldprecover.reports import tally_sampler

TRIALS = 3000
LIMIT = 1.1**0.5 * (1 + 6.5 / (2 * TRIALS) ** 0.5)
"""Deviations are rounded to steps of a tenth; one of a sample is so far off once in 10^9.
A deviation 1.18 times as large is missed once in 100."""


@pytest.mark.parametrize(
    "oracle", [GRR(1, 2), GRR(1.6, 20), OUE(1.6, 20), OLH(1.6, 20, 6)], ids=str
)
def test_noise_is_that_of_the_perturbation_alone(oracle: FrequencyOracle) -> None:
    """That of counts with one sum is less by the share that the sum takes."""
    rng, d, n = np.random.default_rng(1), oracle.domain_size, 2000
    users = np.append(np.zeros(d - 2, np.int64), [1600, 400])
    tallies = [tally_sampler(oracle).honest_tally(users, rng) for _ in range(TRIALS)]
    z = [oracle.estimate(tally.counts(oracle), n) for tally in tallies]
    sd = estimates_of_counts(oracle, users / n, n).sd
    ratio = np.std(z, axis=0) / sd / (1 - (oracle.fixed_size is not None) / d) ** 0.5
    assert (np.maximum(ratio, 1 / ratio) < LIMIT).all()

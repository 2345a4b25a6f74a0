"""What is un-mixed: the noise of estimates given who holds what."""

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle
from ldprecover.recovery.unmixing import estimates_of_counts, noise_sd

TRIALS = 3000
STEP = 1.1**0.5  # deviations are rounded to steps of a tenth
LIMIT = 1 + 6.5 / (2 * TRIALS) ** 0.5  # a sample deviation is so far off less than once in 10^9


def simulated(
    oracle: FrequencyOracle, user_counts: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    n = int(user_counts.sum())
    return np.array(
        [
            oracle.estimate(oracle.simulation.honest_tally(user_counts, rng).counts(oracle), n)
            for _ in range(TRIALS)
        ]
    )


@pytest.mark.parametrize(
    ("oracle", "user_counts"),
    [
        (GRR(1, 2), [1500, 500]),
        (GRR(1.6, 20), [1600, *[0] * 18, 400]),
        (OUE(1.6, 20), [1600, *[0] * 18, 400]),
        (OLH(1.6, 20, 6), [0, 1600, *[0] * 17, 400]),
    ],
    ids=["grr-2", "grr", "oue", "olh"],
)
def test_noise_is_that_of_the_perturbation_alone(
    oracle: FrequencyOracle, user_counts: list[int]
) -> None:
    """That of counts with one sum is less by the share that the sum takes."""
    z = simulated(oracle, np.array(user_counts), np.random.default_rng(1))
    n, d = sum(user_counts), oracle.domain_size
    sd = (
        estimates_of_counts(oracle, np.array(user_counts) / n, n).sd
        * (1 - (oracle.fixed_size is not None) / d) ** 0.5
    )
    ratio = z.std(axis=0) / sd
    assert (ratio < STEP * LIMIT).all()
    assert (ratio > 1 / (STEP * LIMIT)).all()


def test_deviations_are_of_few_levels() -> None:
    sd = noise_sd(np.linspace(-1, 2, 1000), 10_000, 0.5, 0.01, 0.01)
    levels = np.unique(sd / sd.min())
    np.testing.assert_allclose(
        np.log(levels) / np.log(1.1), np.round(np.log(levels) / np.log(1.1)), atol=1e-9
    )
    assert levels.size < 20


def test_one_report_has_noise_too() -> None:
    """Its median count is 0, which is no measure of noise."""
    measured = estimates_of_counts(GRR(1, 100), GRR(1, 100).estimate(np.eye(100)[3], 1), 1)
    assert (measured.sd > 0).all()
    assert np.isfinite(measured.sd).all()

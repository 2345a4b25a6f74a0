"""Certificates of the mean of numbers: never wrong beyond their confidence, for every attack."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import Tally, frequency_oracle
from ldprecover.certificate import Ahead, certify
from ldprecover.distributions import binomial_threshold
from ldprecover.estimation.means import round_numbers

ROUNDS, FALSE_ALARM = 120, 1e-6

HONEST = {
    "equal": lambda n, rng: np.full(n, 0.3),
    "uniform": lambda n, rng: rng.uniform(-1, 1, n),
    "ends": lambda n, rng: rng.choice([-1.0, 1.0], n, p=[0.8, 0.2]),
    "few large": lambda n, rng: np.where(rng.random(n) < 0.05, 1.0, -0.1),
}


def tally_of(
    numbers: np.ndarray, malicious: int, item: int, epsilon: float, rng: np.random.Generator
) -> Tally:
    """Return the tally of honest users' reports and of malicious ones of an item."""
    oracle = frequency_oracle("grr", epsilon, 2)
    counts = oracle.support_counts(oracle.perturb(round_numbers(numbers, rng), rng))
    counts[item] += malicious
    return Tally(counts, numbers.size + malicious)


@pytest.mark.parametrize("attack", [0, 1])
@pytest.mark.parametrize("honest", HONEST)
@pytest.mark.parametrize(("epsilon", "n", "share"), [(0.5, 300, 0.1), (2.0, 2_000, 0.02)])
def test_interval_contains_the_mean_of_the_honest_numbers(
    attack: int, honest: str, epsilon: float, n: int, share: float
) -> None:
    """The mean is that of the numbers, not of what they were rounded to.

    At a confidence of 50 %, since Chernoff's limits are wide: at most half of the rounds miss. The
    attackers, as many as assumed, all push one way. False alarm 1e-6.
    """
    oracle, rng = frequency_oracle("grr", epsilon, 2), np.random.default_rng(7)
    malicious = math.floor(share * n)
    misses = 0
    for _ in range(ROUNDS):
        numbers = HONEST[honest](n - malicious, rng)
        tally = tally_of(numbers, malicious, attack, epsilon, rng)
        certificate = certify(oracle, tally, share, 0.5)
        low, high = certificate.difference(1, 0)
        misses += not low <= numbers.mean() <= high
        tolerance = certificate.tolerance(Ahead(1, 0, by=float(numbers.mean())))
        misses += tolerance is not None and tolerance > share and low <= numbers.mean()
    assert misses <= binomial_threshold(ROUNDS, 0.5, FALSE_ALARM)


def test_limits_are_near_what_the_attack_reaches() -> None:
    """Attackers who all report 1 shift the estimate; the lower end returns to the honest mean.

    Within 5 times the noise of a round of 10^6 users, and not below the truth by more.
    """
    oracle, rng = frequency_oracle("grr", 1.0, 2), np.random.default_rng(2)
    n, share, mean = 10**6, 0.05, 0.2
    numbers = np.full(n - int(share * n), mean)
    tally = tally_of(numbers, int(share * n), 1, 1.0, rng)
    low, high = certify(oracle, tally, share).difference(1, 0)
    noise = 1 / (oracle.p - oracle.q) / math.sqrt(n)
    assert mean - 5 * noise <= low <= mean
    assert high > mean + share


@given(
    st.integers(1, 10**6),
    st.floats(0, 1),
    st.floats(0, 0.9),
    st.floats(0, 0.9),
    st.floats(-1, 0.999),
)
def test_intervals_widen_with_the_share_up_to_the_tolerance(
    n: int, ones: float, first: float, second: float, above: float
) -> None:
    oracle = frequency_oracle("grr", 1.0, 2)
    plus = round(ones * n)
    tally = Tally(np.array([n - plus, plus]), n)
    small, large = (certify(oracle, tally, share) for share in sorted([first, second]))
    if small.is_possible:
        (low, high), (lower, higher) = small.difference(1, 0), large.difference(1, 0)
        assert lower <= low + 1e-9
        assert high <= higher + 1e-9
    tolerance = large.tolerance(Ahead(1, 0, by=above))
    if large.is_possible and large.difference(1, 0)[0] > above + 1e-9:
        assert tolerance is not None
        assert tolerance >= large.malicious_share - 1e-9
    if tolerance is not None and tolerance < large.malicious_share - 1e-9:
        assert large.difference(1, 0)[0] <= above + 1e-9


def test_mean_of_an_impossible_share_is_unknown() -> None:
    oracle = frequency_oracle("grr", 0.5, 2)
    impossible = certify(oracle, Tally(np.array([0, 10**6]), 10**6), 0.01)
    assert all(math.isnan(end) for end in impossible.difference(1, 0))
    assert impossible.least_malicious_share > 0.3

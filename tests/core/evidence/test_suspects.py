"""Suspected targets from earlier rounds."""

import numpy as np
import pytest

from ldprecover import ParameterError, Tally, frequency_oracle
from ldprecover.evidence.suspects import suspects
from ldprecover.protocols import FrequencyOracle

D = 50
FREQUENCIES = 1 / np.arange(1, D + 1) / (1 / np.arange(1, D + 1)).sum()


def honest(oracle: FrequencyOracle, n: int, seed: int) -> Tally:
    rng = np.random.default_rng(seed)
    return Tally.of(oracle, oracle.perturb(rng.choice(D, n, p=FREQUENCIES), rng))


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
def test_the_targets_of_an_attack_are_suspected_and_little_else(protocol: str) -> None:
    """3 targets raised by 8 standard errors or more; of the 47 others at most 3 with probability
    over 1 - 1e-5.

    At a rate of .01 the number of false discoveries beside 3 sure ones is about binomial(47, 4 *
    .01/50).
    """
    oracle = frequency_oracle(protocol, 2.0, D)
    earlier = [(oracle, honest(oracle, 20_000, seed)) for seed in (1, 2)]
    targets = [7, 20, 41]
    rng = np.random.default_rng(3)
    malicious = oracle.perturb(rng.choice(targets, 6_000), rng)
    poisoned = honest(oracle, 20_000, 4) + Tally.of(oracle, malicious)
    result = suspects(oracle, poisoned, earlier, rate=0.01)
    assert set(targets) <= set(result.items)
    assert len(result.items) <= 6
    assert sorted(result.items, key=lambda v: -result.z[v]) == list(result.items)
    assert (result.p_values[list(result.items)] < 1e-3).all()


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
def test_rises_of_honest_rounds_are_standard_normal(
    protocol: str,
) -> None:
    """z over 50 items and 40 rounds: variance 1 within 6 sqrt(2/2000) and a tenth for GRR's
    dependence.

    Under the null the Benjamini-Hochberg rule suspects anything with probability at most `rate`: of
    40 rounds at .02 more than 8 would with probability below 1e-6.
    """
    oracle = frequency_oracle(protocol, 1.0, D)
    others = [frequency_oracle("oue", 0.5, D), oracle]
    result = [
        suspects(
            oracle,
            honest(oracle, 5_000, 100 + i),
            [(other, honest(other, 4_000, 200 + 2 * i + k)) for k, other in enumerate(others)],
            rate=0.02,
        )
        for i in range(40)
    ]
    z = np.concatenate([one.z for one in result])
    assert abs(z.var() - 1) < 6 * np.sqrt(2 / z.size) + 0.1
    assert abs(z.mean()) < 6 / np.sqrt(z.size)
    assert sum(bool(one.items) for one in result) <= 8


@pytest.mark.parametrize(
    ("protocol", "epsilon", "d", "before", "now"),
    [
        ("grr", 1.0, 1000, 10_000, 1_000),
        ("grr", 1.0, 1000, 100, 10_000),
        ("grr", 3.0, 102, 300, 300),
        ("oue", 3.0, 102, 20_000, 300),
        ("olh", 4.0, 102, 50, 50),
    ],
)
def test_honest_rounds_with_few_reports_have_no_suspects(
    protocol: str, epsilon: float, d: int, before: int, now: int
) -> None:
    """Counts are far from normal. Of 60 rounds at .05 more than 12 would with probability below
    2e-5 (binomial).
    """
    oracle = frequency_oracle(protocol, epsilon, d)
    shape = 1 / np.arange(1, d + 1)
    rng = np.random.default_rng(9)
    suspected = 0
    for _ in range(60):
        first, second = (
            oracle.simulation.honest_tally(rng.multinomial(n, shape / shape.sum()), rng)
            for n in (before, now)
        )
        suspected += bool(suspects(oracle, second, [(oracle, first)]).items)
    assert suspected <= 12


def test_pooling_weights_by_noise_and_drift_widens() -> None:
    oracle = frequency_oracle("grr", 1.0, 3)
    now = Tally(np.array([600, 200, 200]), 1000)
    precise, vague = (
        Tally(np.array([50_000, 25_000, 25_000]), 100_000),
        Tally(np.array([1, 0, 0]), 1),
    )
    strict = suspects(oracle, now, [(oracle, precise), (oracle, vague)])
    assert strict.before == pytest.approx(
        oracle.estimate(precise.counts(oracle), precise.n), abs=1e-3
    )
    assert strict.items == (0,)
    assert suspects(oracle, now, [(oracle, precise)], drift=0.2).items == ()


def test_refuses_rounds_that_cannot_be_compared() -> None:
    oracle, other = frequency_oracle("grr", 1.0, 3), frequency_oracle("grr", 1.0, 4)
    now = Tally(np.array([1, 1, 1]), 3)
    with pytest.raises(ParameterError, match="an earlier round"):
        suspects(oracle, now, [])
    with pytest.raises(ParameterError, match="same items"):
        suspects(oracle, now, [(other, Tally(np.array([1, 1, 1, 0]), 3))])
    with pytest.raises(ParameterError, match="the number of reports, must be"):
        suspects(oracle, now, [(oracle, Tally.empty(3))])
    with pytest.raises(ParameterError, match="rate"):
        suspects(oracle, now, [(oracle, now)], rate=0.5)
    with pytest.raises(ParameterError, match="drift"):
        suspects(oracle, now, [(oracle, now)], drift=-1.0)

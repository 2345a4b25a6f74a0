"""Tallies drawn from their law have the law of tallies of reports."""

from collections.abc import Callable

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError, Tally
from ldprecover.crafting.tallies import input_poisoning_tally, one_hot_tally, sampled_tally
from ldprecover.reports import tally_sampler

SMALL: list[FrequencyOracle] = [GRR(0.5, 6), OUE(0.5, 6), OLH(0.5, 6, 3)]
VALUES = np.array([40, 25, 20, 10, 5, 0])
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1, 0.0, 0.0])
DRAWS = 2_000
Z = 6.5  # two-sided normal tail 8e-11; all seeds are fixed

each_protocol = pytest.mark.parametrize("oracle", SMALL, ids=lambda oracle: oracle.protocol)


def moments(
    draw: Callable[[np.random.Generator], Tally], seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, covariance, and the covariance's standard errors, of many tallies' counts."""
    rng = np.random.default_rng(seed)
    counts = np.array([draw(rng).summary for _ in range(DRAWS)], dtype=np.float64)
    centred = counts - counts.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    return counts.mean(axis=0), products.mean(axis=0), products.std(axis=0) / np.sqrt(DRAWS)


@pytest.mark.slow
@each_protocol
@pytest.mark.parametrize("kind", ["honest", "sampled"])
def test_tallies_vary_as_those_of_reports(oracle: FrequencyOracle, kind: str) -> None:
    """Both draw 2,000 tallies; each mean and covariance differs by less than 6.5 standard errors.

    162 comparisons: by chance beyond once in 10^8 runs. A difference of 8.9 standard errors is
    missed once in 100.

    Where nobody draws an item, GRR and OUE count zero in both and the differences are zero exactly.
    """

    def drawn(rng: np.random.Generator) -> Tally:
        if kind == "honest":
            return tally_sampler(oracle).honest_tally(VALUES, rng)
        return sampled_tally(oracle, WEIGHTS, 50, rng)

    def reported(rng: np.random.Generator) -> Tally:
        if kind == "honest":
            return Tally.of(oracle, oracle.perturb(np.repeat(np.arange(VALUES.size), VALUES), rng))
        return Tally.of(oracle, oracle.encode(rng.choice(WEIGHTS.size, size=50, p=WEIGHTS), rng))

    ours, theirs = moments(drawn, seed=4), moments(reported, seed=5)
    variances = np.diag(ours[1]) + np.diag(theirs[1])
    assert (np.abs(ours[0] - theirs[0]) <= Z * np.sqrt(variances / DRAWS)).all()
    assert (np.abs(ours[1] - theirs[1]) <= Z * np.hypot(ours[2], theirs[2])).all()


@each_protocol
def test_input_poisoning_estimates_its_distribution(oracle: FrequencyOracle) -> None:
    """E f~_Y = P. One tally of 10^6 users: 6.5 sd of Lemma 2 with P, 18 items, by chance beyond
    once in 10^8 runs. A bias of 8.9 sd is missed once in 100.
    """
    m = 1_000_000
    tally = input_poisoning_tally(oracle, WEIGHTS, m, np.random.default_rng(6))
    assert tally.n == m
    error = np.abs(oracle.estimate(tally.counts(oracle), m) - WEIGHTS)
    assert (error < Z * np.sqrt(oracle.variance(WEIGHTS, m))).all()


def test_each_one_hot_report_supports_one_item() -> None:
    tally = one_hot_tally(SMALL[2], WEIGHTS, 1_000, np.random.default_rng(7))
    assert (tally.summary.sum(), tally.n) == (1_000, 1_000)
    assert (tally.summary[WEIGHTS == 0] == 0).all()


@each_protocol
def test_no_users_give_an_empty_tally(oracle: FrequencyOracle) -> None:
    rng = np.random.default_rng(10)
    empty = Tally.empty(6)
    assert tally_sampler(oracle).honest_tally(np.zeros(6, dtype=np.int64), rng) == empty
    assert sampled_tally(oracle, WEIGHTS, 0, rng) == empty
    assert input_poisoning_tally(oracle, WEIGHTS, 0, rng) == empty
    assert one_hot_tally(oracle, WEIGHTS, 0, rng) == empty


@pytest.mark.parametrize("user_items", [[1, 2], [1, 2, 3, 4, 5, -1], [0.5] * 6])
def test_true_counts_must_be_integers_for_each_item(user_items: list[float]) -> None:
    with pytest.raises(ParameterError, match="true_counts must be"):
        tally_sampler(SMALL[0]).honest_tally(user_items, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("weights", "m", "message"),
    [
        ([0.5] * 6, 3, "sum to one"),
        ([1.5, -0.5, 0, 0, 0, 0], 3, "at least 0"),
        ([0.5, 0.5], 3, "of the 6 items"),
        (WEIGHTS, -1, "number of malicious users"),
        (WEIGHTS, True, "number of malicious users"),
    ],
)
def test_rejects_attacks_without_a_distribution(weights: list[float], m: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sampled_tally(SMALL[2], weights, m, np.random.default_rng(0))

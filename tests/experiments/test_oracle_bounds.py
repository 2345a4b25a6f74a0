"""Computed floors: against all orders where there are few items, and against what methods reach on
many.
"""

from itertools import permutations

import numpy as np
import pytest

from ldprecover import project_simplex
from ldprecover.estimation.metrics import mse
from ldprecover_experiments.attacks import parse
from ldprecover_experiments.oracle_bounds import floor_counts, floor_removed, matched_mean
from ldprecover_experiments.parameters import Cell, load_genuine_users
from ldprecover_experiments.poisoned_round import simulate_round


def over_all_orders(z: np.ndarray, values: np.ndarray, sd: float) -> np.ndarray:
    """The posterior mean, order by order."""
    orders = np.array(list(permutations(values)))
    log = -((z - orders) ** 2).sum(axis=1) / (2 * sd**2)
    weights = np.exp(log - log.max())
    mean: np.ndarray = weights @ orders / weights.sum()
    return mean


@pytest.mark.parametrize("sd", [0.05, 0.3])
def test_the_floor_is_near_the_mean_over_all_orders(sd: float) -> None:
    """Six items, the fewest and so the worst case: within 15 % of the exact posterior mean's error
    in 100 rounds.
    """
    rng = np.random.default_rng(3)
    values = np.array([0.4, 0.25, 0.15, 0.1, 0.1, 0.0])
    errors = np.zeros((2, 100))
    for trial in range(100):
        z = values + sd * rng.standard_normal(6)
        near = matched_mean(z, values, lambda f: np.full(f.size, sd**2))
        errors[:, trial] = mse(near, values), mse(over_all_orders(z, values, sd), values)
    assert errors[0].mean() == pytest.approx(errors[1].mean(), rel=0.15)


def test_posterior_mean_without_noise_and_with_noise_alone() -> None:
    values = np.array([0.5, 0.3, 0.2, 0.0])
    exact = matched_mean(values[::-1].copy(), values, lambda f: np.full(f.size, 1e-8))
    assert exact == pytest.approx(values[::-1])
    lost = matched_mean(np.array([3.0, -2.0, 1.0, 0.0]), values, lambda f: np.full(f.size, 1e8))
    assert lost == pytest.approx(0.25, abs=1e-3)


def test_spikes_in_unknown_order_are_separated() -> None:
    """Twenty items of 0.05 and spikes of 1 on three of them: without noise all is known."""
    values, added = np.full(20, 0.05), np.zeros(20)
    added[[3, 7, 11]] = 1.0
    estimate = matched_mean(
        0.9 * values + added, values, lambda f: np.full(f.size, 1e-6), share=0.9, added=added
    )
    assert estimate == pytest.approx(0.05)


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
@pytest.mark.parametrize(
    ("attack", "model"), [("mga", "sampled"), ("aa-diffuse", "sampled"), ("mga", "input")]
)
def test_no_projection_is_below_a_floor(protocol: str, attack: str, model: str) -> None:
    """Means of five rounds: a floor is a distribution, and has a lower error than what it is a
    floor of.
    """
    genuine_users = load_genuine_users("ipums-like", users=100_000)
    errors = np.zeros((4, 5))
    for trial in range(5):
        round_ = simulate_round(
            Cell("ipums-like", protocol, parse(attack), model, trial=trial), genuine_users, 0
        )
        floors = floor_removed(round_), floor_counts(round_)
        for floor in floors:
            assert floor.min() >= 0
            assert floor.sum() == pytest.approx(1, abs=1e-4)
        projections = map(project_simplex, (round_.f_genuine, round_.poisoned.frequencies))
        errors[:, trial] = [mse(f, round_.truth) for f in (*floors, *projections)]
    removed, counts, genuine, poisoned = errors.mean(axis=1)
    assert removed < genuine
    assert counts < poisoned


def test_without_an_attack_both_floors_are_one() -> None:
    genuine_users = load_genuine_users("geometric", users=20_000)
    round_ = simulate_round(Cell("geometric", "oue", None, "none", beta=0.0), genuine_users, 0)
    assert floor_counts(round_).tolist() == floor_removed(round_).tolist()

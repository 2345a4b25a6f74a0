"""Synthetic data sets: formulas that give the same counts on every machine.

A conclusion from one data set may hold for that data set alone. These are wide and narrow, steep
and flat, with several modes and with items that nobody holds.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ldprecover_client import Dataset, Population, load_dataset


def ipums_like() -> Dataset:
    """Return the 102 largest US cities, to the power with sum of f squared 0.064.

    The paper's IPUMS has 102 items and 389,894 users. Its Table I has an error of 5.3e-4 where the
    answer is uniform, whose error is (sum f^2 - 1/d)/d: hence 0.064. The cities as they are have
    0.032.
    """
    cities = load_dataset("cities")
    shares = _powered(cities.counts.astype(np.float64), 0.064)
    return _dealt(
        "ipums-like", shares, 389_894, "the data set cities raised to a power", cities.items
    )


def fire_like() -> Dataset:
    """Return 80 busy items and a tail of 410, to the power with sum of f squared 0.0198.

    The paper's Fire has 490 items and 667,574 users; 0.0198 follows from its Table I as for
    `ipums_like`. The busy items are the mid-quantiles exp(-0.45 ln(1/u - 1)/1.702) of a logistic
    law near the lognormal of sd 0.45, and each item of the tail has 0.98 of the one before.
    """
    u = (np.arange(80)[::-1] + 0.5) / 80
    busy = np.exp(
        -0.45 * np.log(1 / u - 1) / 1.702
    )  # a normal quantile is near a logistic one over 1.702
    shares = _powered(np.append(busy, busy[-1] * 0.98 ** np.arange(1, 411)), 0.0198)
    return _dealt("fire-like", shares, 667_574, "80 busy items and a geometric tail")


def zipf() -> Dataset:
    """Return 1,024 items in proportion to rank^-1.5 (Zipf's law), wide and steep: 10^6 users."""
    return _dealt("zipf", np.arange(1.0, 1025) ** -1.5, 1_000_000, "rank^-1.5")


def bump() -> Dataset:
    """Return 300 items with two modes and 135 items that nobody holds: 150,000 users.

    exp(-(v - 75)^2/(2 25^2)) + exp(-(v - 200)^2/(2 40^2))/2, the 45 % of least weight set to zero.
    """
    v = np.arange(300.0)
    weights = np.exp(-((v - 75) ** 2) / (2 * 25**2)) + np.exp(-((v - 200) ** 2) / (2 * 40**2)) / 2
    weights[np.argsort(weights, kind="stable")[:135]] = 0
    return _dealt("bump", weights, 150_000, "two bumps and 45 % zeros")


def geometric() -> Dataset:
    """Return 57 items in proportion to 0.9^k, k = 0..56: a narrow domain of 100,000 users."""
    return _dealt("geometric", 0.9 ** np.arange(57.0), 100_000, "0.9^k")


def _powered(weights: NDArray[np.float64], squares: float) -> NDArray[np.float64]:
    """Return the shares f of weights to the power s with this sum of f squared; s by bisection."""
    low, high = 0.0, 8.0
    for _ in range(60):
        power = (low + high) / 2
        shares = (weights / weights.max()) ** power
        shares /= shares.sum()
        low, high = (power, high) if (shares**2).sum() < squares else (low, power)
    return np.asarray(shares)


def _dealt(
    name: str,
    weights: NDArray[np.float64],
    users: int,
    formula: str,
    items: tuple[str, ...] | None = None,
) -> Dataset:
    """Return a data set of `users` users, divided in these proportions."""
    labels = items or tuple(f"item {i + 1}" for i in range(weights.size))
    return Dataset(
        name, labels, Population(weights, users, seed=0, draw="apportioned").counts, formula
    )


WORLDS: dict[str, Callable[[], Dataset]] = {
    "ipums-like": ipums_like,
    "fire-like": fire_like,
    "zipf": zipf,
    "bump": bump,
    "geometric": geometric,
}
"""Name -> function that returns the data set."""

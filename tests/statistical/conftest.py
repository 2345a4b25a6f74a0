"""The paper's setting, and the exact moments that tolerances are derived from.

Every test here states how often it would fail on right code. Their sum is below 1e-6; most are
seeded besides, so that only a change of code or of numpy's streams draws other samples.
"""

from collections.abc import Callable

import numpy as np
import pytest

from ldprecover import GRR, FrequencyOracle

D = 102  # items of the paper's IPUMS setting (VI-A)


def apportion_users(weights: np.ndarray, n: int) -> np.ndarray:
    """Return whole numbers of users near n * weights, by the largest remainders."""
    shares = n * weights / weights.sum()
    counts = np.floor(shares).astype(np.int64)
    counts[np.argsort(counts - shares)[: n - counts.sum()]] += 1
    return counts


def report_covariance(oracle: FrequencyOracle, users: np.ndarray) -> np.ndarray:
    """Return the exact covariance matrix of the estimate f~ from users[v] honest users of each
    item.

    A GRR report is one draw among the items. The bits of an OUE report are independent. So is, of
    two items, whether an OLH report supports them, for a hash that is pairwise independent.
    """
    d, p, q = oracle.domain_size, oracle.p, oracle.q
    probability = np.full((d, d), q) + (p - q) * np.eye(
        d
    )  # of supporting v (row) when holding w (column)
    if isinstance(oracle, GRR):
        counts = np.diag(probability @ users) - probability @ np.diag(users) @ probability.T
    else:
        counts = np.diag((probability * (1 - probability)) @ users)
    return counts / (users.sum() * (p - q)) ** 2


def mse_moments(covariance: np.ndarray, bias: np.ndarray) -> tuple[float, float]:
    """Return mean and variance of |e|^2/d for e ~ N(bias, covariance)."""
    d = bias.size
    mean = (bias @ bias + np.trace(covariance)) / d
    variance = (2 * (covariance**2).sum() + 4 * bias @ covariance @ bias) / d**2
    return float(mean), float(variance)


@pytest.fixture(scope="session")
def apportion() -> Callable[[np.ndarray, int], np.ndarray]:
    """The function apportion_users."""
    return apportion_users


@pytest.fixture(scope="session")
def zipf() -> Callable[[int], np.ndarray]:
    """Numbers of users for each of 102 items, n together, in Zipf(1.02) proportions."""
    return lambda n: apportion_users(1 / np.arange(1, D + 1) ** 1.02, n)


@pytest.fixture(scope="session")
def moments() -> tuple[Callable[..., np.ndarray], Callable[..., tuple[float, float]]]:
    """The functions report_covariance and mse_moments."""
    return report_covariance, mse_moments

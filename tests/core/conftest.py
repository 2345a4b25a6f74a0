"""The frequency oracles that the common suite runs over."""

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle

ORACLES = [
    GRR(0.5, 102),
    GRR(10, 490),
    OUE(0.01, 2),
    OUE(3, 490),
    OLH(0.5, 102, 3),
    OLH(10, 300, 65_536),
]


@pytest.fixture(
    scope="session", params=ORACLES, ids=lambda o: f"{o.protocol}-d{o.domain_size}-eps{o.epsilon:g}"
)
def oracle(request: pytest.FixtureRequest) -> FrequencyOracle:
    """Each frequency oracle in turn, at small, usual and extreme parameters."""
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, the same for every test."""
    return np.random.default_rng(20240513)

"""The errors and gains of a demo's estimates."""

import numpy as np
import pytest

from ldprecover_experiments import Comparison, DemoSettings
from ldprecover_experiments.simulation.comparison import ESTIMATES

TRUE = np.array([0.6, 0.3, 0.1])


@pytest.fixture
def comparison() -> Comparison:
    """Each estimate is off by its place in ESTIMATES, in hundredths; the target is the last
    item.
    """
    estimates = {name: TRUE + 0.01 * i * np.array([-1, 0, 1]) for i, name in enumerate(ESTIMATES)}
    return Comparison(DemoSettings(), ("cat", "dog", "newt"), (2,), TRUE, estimates)


def test_errors_and_gains_are_of_each_estimate(comparison: Comparison) -> None:
    assert comparison.mse["poisoned"] == pytest.approx(6.7e-5, rel=0.01)
    assert comparison.fg is not None
    assert comparison.fg["poisoned"] == pytest.approx(0.01)

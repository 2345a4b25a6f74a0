"""Mean squared error and frequency gain."""

from typing import Any

import numpy as np
import pytest

from ldprecover import ParameterError
from ldprecover.estimation.metrics import frequency_gain, mse


def test_mse_is_the_mean_of_the_squares() -> None:
    assert mse([1, 2, 3], [1, 0, 6]) == pytest.approx((0 + 4 + 9) / 3)
    assert mse([0.5], [0.5]) == 0


def test_frequency_gain_is_positive_if_targets_rose() -> None:
    """FG = sum_T (f* - f~_X~): what the attacker gained."""
    assert frequency_gain([0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0, 1]) == pytest.approx(0.5)
    assert frequency_gain([0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0, 1]) == pytest.approx(-0.5)


def test_repeated_targets_count_once() -> None:
    repeated: list[Any] = [0, 0, np.int64(0)]
    assert frequency_gain([0.5, 0.5], [0.0, 1.0], repeated) == 0.5
    assert frequency_gain([0.5, 0.5], [0.0, 1.0], []) == 0


@pytest.mark.parametrize("targets", [[2], [-1], [0.0], ["0"], [True], [None]])
def test_targets_are_indices_of_the_vectors(targets: list[int]) -> None:
    with pytest.raises(ParameterError, match="every target must be an integer from 0 to 1"):
        frequency_gain([0.5, 0.5], [0.5, 0.5], targets)


@pytest.mark.parametrize(
    "bad", [[1.0], [1.0, 2.0, 3.0], [np.nan, 1.0], [[1.0, 2.0]], [], ["a", "b"]]
)
def test_vectors_are_finite_and_of_one_length(bad: list[float]) -> None:
    for refused in (
        lambda: mse(bad, [0.5, 0.5]),
        lambda: mse([0.5, 0.5], bad),
        lambda: frequency_gain(bad, [0.5, 0.5], [0]),
        lambda: frequency_gain([0.5, 0.5], bad, [0]),
    ):
        with pytest.raises(ParameterError, match="must be"):
            refused()

"""Estimates, variances and parameters of protocols; the common suite is test_every_protocol.py."""

import math
from typing import Any

import numpy as np
import pytest

from ldprecover import OLH, FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.protocols import (
    MAX_DOMAIN_SIZE,
    PROTOCOLS,
    default_hash_range,
    own_parameter,
)


def test_estimates_and_variances_need_numbers(oracle: FrequencyOracle) -> None:
    values: tuple[Any, ...] = ("0.1", ["0.1"], None, np.nan, 1j, True, {0.1}, [0.1, [0.2]])
    for wrong in values:
        for refused in (oracle.variance, oracle.standard_errors):
            with pytest.raises(ParameterError, match="frequencies must be"):
                refused(wrong, 9)
    numbers: tuple[Any, ...] = (0, -1, "9", 9.0, True, None, np.nan, 10**400, np.array(9))
    for n in numbers:
        for call in (oracle.estimate, oracle.variance, oracle.standard_errors):
            with pytest.raises(ParameterError, match="the number of reports, must be"):
                call([0] * oracle.domain_size, n)


@pytest.mark.parametrize("rng", [0, "x", np.random, np.random.RandomState(0), np.random.PCG64(0)])
def test_a_generator_is_numpys(oracle: FrequencyOracle, rng: Any) -> None:
    with pytest.raises(ParameterError, match=r"None or np\.random\.default_rng\(seed\), not"):
        oracle.perturb([0, 1], rng)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rejects_parameters_outside_their_range(protocol: str) -> None:
    bad: Any
    for bad in (
        0,
        -1,
        0.0099,
        10.01,
        math.inf,
        math.nan,
        "1",
        True,
        np.bool_(True),
        None,
        [1.0],
        1j,
    ):
        with pytest.raises(ParameterError, match=r"epsilon must be a number from 0\.01 to 10"):
            frequency_oracle(protocol, bad, 10)
    for bad in (1, 0, -5, MAX_DOMAIN_SIZE + 1, 2.0, True, "2", None):
        with pytest.raises(ParameterError, match="domain_size must be"):
            frequency_oracle(protocol, 1.0, bad)
    own = PROTOCOLS[protocol].parameter
    if own is None:
        with pytest.raises(ParameterError, match="hash_range belongs to olh"):
            frequency_oracle(protocol, 1.0, 10, 3)
        return
    for bad in (own.low - 1, own.high + 1, 3.0, True, "3"):
        with pytest.raises(ParameterError, match=f"{own.name} must be"):
            frequency_oracle(protocol, 1.0, 10, bad)


@pytest.mark.parametrize("name", ["", "GRR", "rappor", "olh "])
def test_unknown_protocol_is_rejected_with_the_names(name: str) -> None:
    with pytest.raises(ParameterError, match="grr, oue, olh"):
        frequency_oracle(name, 1.0, 10)


@pytest.mark.parametrize(
    ("epsilon", "g"), [(0.2, 3), (0.5, 3), (1, 4), (1.5, 6), (3, 22), (10, 22_028)]
)
def test_default_hash_range_is_the_papers(epsilon: float, g: int) -> None:
    """ceil(e^eps + 1), not the round(e^eps) + 1 of other libraries, which gives 2 at epsilon
    0.2.
    """
    assert default_hash_range(epsilon) == g
    assert frequency_oracle("olh", epsilon, 10) == OLH(epsilon, 10, g)


def test_own_parameter_is_the_protocols() -> None:
    values = {"hash_range": 5, "subset_size": None}
    assert own_parameter("olh", values) == 5
    assert own_parameter("ss", {"subset_size": 3, "hash_range": None}) == 3
    assert own_parameter("grr", {"hash_range": None}) is None
    with pytest.raises(ParameterError, match="grr has none"):
        own_parameter("grr", values)

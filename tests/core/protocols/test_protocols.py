"""Estimates, variances and parameters of protocols; the common suite is test_every_protocol.py."""

import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from ldprecover import GRR, OLH, FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.protocols import MAX_DOMAIN_SIZE, PROTOCOLS, default_hash_range


@pytest.mark.parametrize("n", [0, -1])
def test_no_report_gives_no_estimate(oracle: FrequencyOracle, n: int) -> None:
    zeros = [0] * oracle.domain_size
    for refused in (oracle.estimate, oracle.variance, oracle.standard_errors):
        with pytest.raises(ParameterError, match="the number of reports, must be"):
            refused(zeros, n)


def test_a_variance_is_at_finite_numbers(oracle: FrequencyOracle) -> None:
    values: tuple[Any, ...] = ("0.1", ["0.1"], None, np.nan, 1j, True, {0.1}, [0.1, [0.2]])
    for wrong in values:
        for refused in (oracle.variance, oracle.standard_errors):
            with pytest.raises(ParameterError, match="frequencies must be"):
                refused(wrong, 9)
    numbers: tuple[Any, ...] = ("9", 9.0, None, 10**400, np.array(9))
    for n in numbers:
        with pytest.raises(ParameterError, match="the number of reports, must be"):
            oracle.estimate([0] * oracle.domain_size, n)
        with pytest.raises(ParameterError, match="the number of reports, must be"):
            oracle.standard_errors(0.1, n)


@pytest.mark.parametrize("rng", [0, "x", np.random, np.random.RandomState(0), np.random.PCG64(0)])
def test_a_generator_is_numpys(oracle: FrequencyOracle, rng: Any) -> None:
    with pytest.raises(ParameterError, match=r"None or np\.random\.default_rng\(seed\), not"):
        oracle.perturb([0, 1], rng)


def test_parameters_cannot_be_changed(oracle: FrequencyOracle) -> None:
    with pytest.raises(FrozenInstanceError):
        oracle.epsilon = 1.0  # type: ignore[misc]
    assert replace(oracle) == oracle
    assert hash(replace(oracle)) == hash(oracle)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rejects_parameters_outside_their_range(protocol: str) -> None:
    bad: Any
    for bad in (0, -1, 0.0099, 10.01, math.inf, math.nan, "1", True, None):
        with pytest.raises(ParameterError, match="epsilon must be"):
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


@pytest.mark.parametrize("bad", [[-1], [2**40], [0.5], ["0"], [[0]], [True], 3])
def test_rejects_items_outside_the_domain(bad: Any) -> None:
    with pytest.raises(ParameterError, match="items must be"):
        GRR(1.0, 10).perturb(bad)


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

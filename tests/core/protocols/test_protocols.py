"""Estimates, variances and parameters of protocols; the common suite is test_every_protocol.py."""

import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.protocols import MAX_DOMAIN_SIZE, PROTOCOLS, default_hash_range


def test_privacy_of_the_nominal_probabilities_is_epsilon(oracle: FrequencyOracle) -> None:
    p, q, e = oracle.p, oracle.q, math.exp(oracle.epsilon)
    ratio = {
        "grr": lambda: p / q,
        "oue": lambda: p * (1 - q) / ((1 - p) * q),
        "olh": lambda: p * (replace(oracle).hash_range - 1) / (1 - p),  # type: ignore[attr-defined]
    }[oracle.protocol]()
    assert ratio == pytest.approx(e, rel=1e-9)


@given(counts=st.lists(st.integers(0, 1000), min_size=2, max_size=50), n=st.integers(1000, 10**9))
def test_estimates_invert_the_expected_counts(counts: list[int], n: int) -> None:
    oracle = OUE(0.7, len(counts))
    f = oracle.estimate(counts, n)
    # E C(v) = n (f p + (1 - f) q)
    np.testing.assert_allclose(
        n * (f * oracle.p + (1 - f) * oracle.q), counts, rtol=0, atol=1e-9 * n
    )


def test_variance_is_that_of_two_binomials(oracle: FrequencyOracle) -> None:
    """n f users send a one with probability p, the others with probability q."""
    p, q, n = oracle.p, oracle.q, 1000
    f = np.array([0.0, 0.1, 0.5, 1.0])
    direct = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (n * (p - q) ** 2)
    np.testing.assert_allclose(oracle.variance(f, n), direct, rtol=1e-9)


def test_standard_errors_clip_the_estimate_and_stay_real(oracle: FrequencyOracle) -> None:
    se = oracle.standard_errors([-3.0, 0.0, 1.0, 5.0], 100)
    assert se[0] == se[1] == pytest.approx(math.sqrt(oracle.variance([0.0], 100)[0]))
    assert se[2] == se[3] == pytest.approx(math.sqrt(oracle.variance([1.0], 100)[0]))
    assert (se > 0).all()


@pytest.mark.parametrize("n", [0, -1])
def test_no_report_gives_no_estimate(oracle: FrequencyOracle, n: int) -> None:
    zeros = [0] * oracle.domain_size
    for refused in (oracle.estimate, oracle.variance, oracle.standard_errors):
        with pytest.raises(ParameterError, match="at least one report"):
            refused(zeros, n)


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


def test_olh_supports_every_item_its_seed_hashes_to_its_bucket() -> None:
    oracle = OLH(1.0, 1000, 4)
    report = oracle.reports([12345], [2])
    expected = oracle.buckets(np.uint32(12345), np.arange(1000)) == 2
    np.testing.assert_array_equal(oracle.supports(report)[0], expected)
    np.testing.assert_array_equal(oracle.support_counts(report), expected)


def test_oue_one_hot_is_one_bit_in_the_wire_order() -> None:
    assert OUE(1, 11).encode([0, 7, 8, 10]).tolist() == [[1, 0], [128, 0], [0, 1], [0, 4]]

"""One common suite over every frequency oracle, then what is each one's own."""

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError, ReportError, frequency_oracle
from ldprecover.protocols import MAX_DOMAIN_SIZE, PROTOCOLS, default_hash_range


def items_of(oracle: FrequencyOracle, max_size: int = 200) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.integers(0, oracle.domain_size - 1), max_size=max_size).map(
        lambda v: np.array(v, np.int64)
    )


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_counts_are_the_column_sums_of_the_supports(
    oracle: FrequencyOracle, data: st.DataObject, seed: int
) -> None:
    items = data.draw(items_of(oracle))
    for reports in (oracle.perturb(items, np.random.default_rng(seed)), oracle.encode(items)):
        supports = oracle.supports(reports)
        assert supports.shape == (items.size, oracle.domain_size)
        counts = oracle.support_counts(reports)
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(supports.sum(axis=0), counts)


@given(data=st.data())
def test_an_encoded_item_is_supported_by_its_own_report(
    oracle: FrequencyOracle, data: st.DataObject
) -> None:
    items = data.draw(items_of(oracle))
    supports = oracle.supports(oracle.encode(items))
    assert supports[np.arange(items.size), items].all()


def test_reports_are_their_packed_bytes_and_pass_their_own_check(
    oracle: FrequencyOracle, rng: np.random.Generator
) -> None:
    reports = oracle.perturb(rng.integers(0, oracle.domain_size, 500), rng)
    assert len(reports) == 500
    assert reports.nbytes == 500 * oracle.wire.size
    assert reports.dtype == oracle.wire.dtype.base
    oracle.wire.check(reports)


def test_seeded_generators_repeat_and_the_system_does_not(
    oracle: FrequencyOracle,
) -> None:
    items = np.arange(400) % oracle.domain_size
    seeded = [oracle.perturb(items, np.random.default_rng(7)).tobytes() for _ in range(2)]
    assert seeded[0] == seeded[1]
    # Chance of equality: under 2^-100 for every oracle but GRR at epsilon 10, d = 490: about exp(-2
    # * 400 * 0.02).
    draws = [oracle.perturb(np.tile(items, 10)).tobytes() for _ in range(2)]
    assert draws[0] != draws[1]


def test_no_items_give_no_reports(oracle: FrequencyOracle) -> None:
    for reports in (oracle.perturb([]), oracle.encode([])):
        assert len(reports) == 0
        assert oracle.support_counts(reports).tolist() == [0] * oracle.domain_size
        assert oracle.supports(reports).shape == (0, oracle.domain_size)


@pytest.mark.parametrize("bad", [[-1], [2**40], [0.5], ["0"], [[0]], [True], 3])
def test_items_outside_the_domain_are_rejected(oracle: FrequencyOracle, bad: object) -> None:
    with pytest.raises(ParameterError, match="items must be"):
        oracle.perturb(bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="items must be"):
        oracle.encode([0, oracle.domain_size])


def test_an_honest_report_supports_p_plus_d_minus_one_q_items(oracle: FrequencyOracle) -> None:
    assert oracle.laws.mean_size == pytest.approx(oracle.p + (oracle.domain_size - 1) * oracle.q)
    # A report of that size has S = 1: honest frequencies sum to one.
    assert (oracle.laws.mean_size - oracle.q * oracle.domain_size) / (
        oracle.p - oracle.q
    ) == pytest.approx(1)


def test_privacy_of_the_nominal_probabilities_is_epsilon(oracle: FrequencyOracle) -> None:
    p, q, e = oracle.p, oracle.q, math.exp(oracle.epsilon)
    ratio = {
        "grr": lambda: p / q,
        "oue": lambda: p * (1 - q) / ((1 - p) * q),
        "olh": lambda: p / ((1 - p) / (replace(oracle).hash_range - 1)),  # type: ignore[attr-defined]
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


def test_estimates_are_never_clipped(oracle: FrequencyOracle) -> None:
    nobody, everybody = oracle.estimate([0], 10)[0], oracle.estimate([10], 10)[0]
    assert nobody == pytest.approx(-oracle.q / (oracle.p - oracle.q))
    assert everybody == pytest.approx((1 - oracle.q) / (oracle.p - oracle.q))
    assert nobody < 0
    assert everybody > 1


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


@pytest.mark.parametrize("epsilon", [0, -1, 0.0099, 10.01, math.inf, math.nan, "1", True, None])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_epsilon_outside_its_range_is_rejected(protocol: str, epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon must be"):
        frequency_oracle(protocol, epsilon, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("d", [1, 0, -5, MAX_DOMAIN_SIZE + 1, 2.0, True, "2", None])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_domain_size_outside_its_range_is_rejected(protocol: str, d: object) -> None:
    with pytest.raises(ParameterError, match="domain_size must be"):
        frequency_oracle(protocol, 1.0, d)  # type: ignore[arg-type]


@pytest.mark.parametrize("g", [1, 0, 65_537, 3.0, True, "3"])
def test_hash_range_outside_its_range_is_rejected(g: object) -> None:
    with pytest.raises(ParameterError, match="hash_range must be"):
        OLH(1.0, 10, g)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["grr", "oue"])
def test_hash_range_is_olhs_alone(protocol: str) -> None:
    with pytest.raises(ParameterError, match="belongs to olh"):
        frequency_oracle(protocol, 1.0, 10, 3)


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


@pytest.mark.parametrize(
    ("oracle", "reports", "reason"),
    [
        (GRR(1, 5), np.array([4, 0, 5, 6], "<u4"), "from 0 to 4"),
        (OUE(1, 5), np.array([[0b11111], [0], [0b100000], [0b11000000]], np.uint8), "padding bits"),
        (
            OLH(1, 5, 4),
            np.array([(9, 3), (9, 0), (9, 4), (9, 9)], [("seed", "<u4"), ("bucket", "<u2")]),
            "from 0 to 3",
        ),
    ],
    ids=["grr", "oue", "olh"],
)
def test_the_first_report_outside_its_range_is_named(
    oracle: FrequencyOracle, reports: np.ndarray, reason: str
) -> None:
    oracle.wire.check(reports[:2])
    with pytest.raises(ReportError, match=reason) as refused:
        oracle.wire.check(reports)
    assert refused.value.position == 2


def test_oue_of_whole_bytes_has_no_padding_to_check() -> None:
    OUE(1, 16).wire.check(np.full((3, 2), 0xFF, np.uint8))


def test_olh_supports_every_item_its_seed_hashes_to_its_bucket() -> None:
    oracle = OLH(1.0, 1000, 4)
    report = oracle.reports([12345], [2])
    expected = oracle.buckets(np.uint32(12345), np.arange(1000)) == 2
    np.testing.assert_array_equal(oracle.supports(report)[0], expected)
    np.testing.assert_array_equal(oracle.support_counts(report), expected)


def test_oue_one_hot_is_one_bit_in_the_wire_order() -> None:
    assert OUE(1, 11).encode([0, 7, 8, 10]).tolist() == [[1, 0], [128, 0], [0, 1], [0, 4]]

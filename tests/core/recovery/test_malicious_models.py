"""Models of the malicious frequencies, and the share of malicious reports by the sum."""

import math
from typing import Any

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError, RecoveryRequest, recover
from ldprecover.crafting import crafter_of
from ldprecover.protocols import LLH
from ldprecover.protocols.hr import HR
from ldprecover.recovery import estimate_share

D = 102
TARGETS = range(10)


def subtracted(oracle: FrequencyOracle, model: str, **fields: Any) -> np.ndarray:
    """Return f~_Y of a model, without the estimates having a part in it."""
    d = oracle.domain_size
    return recover(
        oracle,
        np.full(d, 1 / d),
        RecoveryRequest("ldprecover", targets=TARGETS, malicious_model=model, **fields),
    ).malicious


@pytest.mark.parametrize(("g", "hits", "total"), [(3, 8.71, 45.3), (4, 7.91, 24.0)])
def test_best_of_a_thousand_seeds_at_the_papers_setting(g: int, hits: float, total: float) -> None:
    """r = 10: c = 8.71 at epsilon 0.5 and 7.9 at 1, as simulated; f~_Y sums to (c - rq)/(p - q)."""
    oracle = OLH({3: 0.5, 4: 1.0}[g], D, g)
    mean = crafter_of(oracle).expected_hits(10)
    assert mean is not None
    assert mean[0] == pytest.approx(hits, abs=0.03)
    malicious = subtracted(oracle, "searched")
    assert malicious.sum() == pytest.approx(total, rel=0.01)
    assert not malicious[10:].any()


@pytest.mark.parametrize(
    ("epsilon", "d", "total"), [(0.5, 102, -4.16), (1.0, 102, -1.87), (0.5, 490, 0.04)]
)
def test_sum_of_padded_reports_falls_short_by_the_floor(
    epsilon: float, d: int, total: float
) -> None:
    """1 - frac(p + (d-1)q)/(p - q); all targets are in each report."""
    oracle = OUE(epsilon, d)
    malicious = subtracted(oracle, "padded")
    frac = oracle.laws.mean_size - math.floor(oracle.laws.mean_size)
    assert malicious.sum() == pytest.approx(1 - frac / (oracle.p - oracle.q), abs=1e-9)
    assert malicious.sum() == pytest.approx(total, abs=0.01)
    assert malicious[:10] == pytest.approx((1 - oracle.q) / (oracle.p - oracle.q))


def test_more_targets_than_ones_leave_none_for_padding() -> None:
    oracle = OUE(0.5, 12)  # 4.65 ones in an honest report
    malicious = recover(
        oracle,
        np.zeros(12),
        RecoveryRequest("ldprecover", targets=range(8), malicious_model="padded"),
    ).malicious
    assert malicious[8:] == pytest.approx(-oracle.q / (oracle.p - oracle.q))


def test_custom_is_the_given_support() -> None:
    """pi(v) = 1/r on T is the model exact, with or without naming T."""
    oracle = OUE(0.5, D)
    pi = np.zeros(D)
    pi[:10] = 0.1
    f_z = np.linspace(-0.2, 0.3, D)
    exact = recover(
        oracle, f_z, RecoveryRequest("ldprecover", targets=TARGETS, malicious_model="exact")
    )
    custom = recover(
        oracle, f_z, RecoveryRequest("ldprecover", malicious_model="custom", support=pi)
    )
    np.testing.assert_allclose(custom.malicious, exact.malicious, rtol=1e-12)
    np.testing.assert_allclose(custom.recovered, exact.recovered, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("oracle", "model", "fields", "reason"),
    [
        (GRR(0.5, D), "padded", {}, "of oue and sue and ss reports; grr"),
        (OLH(0.5, D, 3), "padded", {}, "of oue and sue and ss reports; olh"),
        (GRR(0.5, D), "searched", {}, "of olh reports; grr"),
        (OUE(0.5, D), "searched", {}, "of olh reports; oue"),
        (OUE(0.5, D), "custom", {}, "needs support"),
        (OUE(0.5, D), "custom", {"support": [0.1] * 3}, "support must be of the 102 items"),
        (
            OUE(0.5, D),
            "custom",
            {"support": [1.1] * D},
            "support.0 must be a number from 0 to 1",
        ),
        (
            GRR(0.5, D),
            "custom",
            {"support": [0.1] * D},
            "support must sum to 1, for a grr report supports one item",
        ),
        (OUE(0.5, D), "padded", {"targets": ()}, "padded needs targets"),
        (OLH(0.5, 300, 3), "searched", {"targets": range(201)}, "at most 200 targets, not 201"),
    ],
)
def test_error_states_why_a_model_does_not_fit(
    oracle: FrequencyOracle, model: str, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParameterError, match=reason):
        recover(
            oracle,
            np.zeros(oracle.domain_size),
            RecoveryRequest("ldprecover", malicious_model=model, **{"targets": TARGETS, **fields}),
        )


@pytest.mark.parametrize(
    ("oracle", "model"),
    [
        (OUE(0.5, D), "exact"),
        (OUE(0.5, D), "padded"),
        (OLH(0.5, D, 3), "searched"),
        (OLH(0.5, D, 3), "exact"),
        (LLH(0.5, D, 3), "exact"),
        (HR(0.5, D), "exact"),
    ],
    ids=lambda value: getattr(value, "protocol", value),
)
def test_auto_eta_inverts_a_noiseless_attack(oracle: FrequencyOracle, model: str) -> None:
    f = 1 / np.arange(1, D + 1)
    f /= f.sum()
    f_y = subtracted(oracle, model)
    result = recover(
        oracle,
        (f + 0.08 * f_y) / 1.08,
        RecoveryRequest("ldprecover", eta="auto", targets=TARGETS, malicious_model=model),
        n=10**8,
    )
    assert result.eta == pytest.approx(0.08)
    np.testing.assert_allclose(result.recovered, f, rtol=0, atol=1e-9)
    assert any("eta = 0.08 is estimated" in note for note in result.notes)


def test_without_targets_eta_is_estimated_from_the_printed_sum() -> None:
    """sum f~_Z = 1 + beta(S - 1): S = -306.3 and beta = 1/10 make it -29.73."""
    oracle = OUE(0.5, D)
    total = 1 + 0.1 * (oracle.malicious_sum - 1)
    result = recover(
        oracle, np.full(D, total / D), RecoveryRequest("ldprecover", eta="auto"), n=400_000
    )
    assert result.eta == pytest.approx(1 / 9)


def test_standard_error_of_the_share_at_the_papers_setting() -> None:
    """OUE, d = 102, epsilon 0.5, N = 410,415: 0.0624/307 = 2.0e-4."""
    oracle = OUE(0.5, D)
    share = estimate_share(oracle, np.full(D, 1 / D), 410_415, oracle.malicious_sum)
    assert share.beta == pytest.approx(0, abs=1e-12)
    assert share.eta == pytest.approx(0, abs=1e-12)
    assert share.standard_error == pytest.approx(0.0624 / 307.3, rel=0.005)


def test_a_sum_that_noise_explains_is_no_attack() -> None:
    """Above 1 by a little: eta is 0, which is projection, and it is said how little that proves."""
    oracle = OUE(0.5, D)
    result = recover(
        oracle, np.full(D, 1.05 / D), RecoveryRequest("ldprecover", eta="auto"), n=400_000
    )
    assert result.eta == 0
    assert any("within 4 standard errors of no malicious report" in note for note in result.notes)


@pytest.mark.parametrize(
    ("oracle", "total", "n", "fields", "reason"),
    [
        (GRR(0.5, D), 1.0, 400_000, {}, "grr estimates sum to 1 with and without"),
        (OUE(0.5, D), 2.0, 400_000, {}, "no share of malicious reports"),
        (OUE(0.5, D), -400.0, 400_000, {}, "no share of malicious reports"),
        (OUE(0.5, D), 1.0, 4, {}, "standard error"),
        (OUE(0.5, D), 1.0, None, {}, "needs the number of reports"),
        (
            OUE(0.5, 490),
            1.0,
            400_000,
            {"targets": TARGETS, "malicious_model": "padded"},
            "malicious reports sum to 0.04.* so near the 1 of honest ones",
        ),
    ],
)
def test_error_if_the_sum_does_not_tell_eta(
    oracle: FrequencyOracle, total: float, n: int | None, fields: dict[str, Any], reason: str
) -> None:
    d = oracle.domain_size
    with pytest.raises(ParameterError, match=reason):
        recover(
            oracle, np.full(d, total / d), RecoveryRequest("ldprecover", eta="auto", **fields), n=n
        )

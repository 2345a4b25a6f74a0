"""Estimates from the histogram of LLH reports, without those that are too frequent."""

import numpy as np
import pytest

from ldprecover import FrequencyOracle, ParameterError, Tally, frequency_oracle, recover
from ldprecover.recovery.unmixing import estimates_of_histogram
from ldprecover_attacker import MGA

BETA = 0.05
SPREAD = "spread"


def truth_of(d: int) -> np.ndarray:
    truth = 1 / np.arange(1, d + 1)
    return truth / truth.sum()


def attacked(oracle: FrequencyOracle, targets: tuple[int, ...], n: int) -> tuple[Tally, Tally]:
    """Return the tallies of honest reports, and of them with those crafted for the targets."""
    rng, m = np.random.default_rng(1), int(BETA * n)
    honest = oracle.simulation.population_tally(truth_of(oracle.domain_size), n - m, rng)
    crafted = np.bincount(MGA(targets).reports(oracle, 20_000, rng), minlength=oracle.summary_size)
    return honest, honest + Tally(rng.multinomial(m, crafted / crafted.sum()), m)


@pytest.mark.parametrize(
    ("epsilon", "d", "r", "n"),
    [
        (1.0, 102, 30, 10**10),
        (0.5, 102, 3, 1_000_000),
        pytest.param(2.0, 300, 10, 10**10, marks=pytest.mark.statistical),
        pytest.param(1.0, 1024, 10, 1_000_000, marks=pytest.mark.statistical),
    ],
)
def test_estimates_are_as_good_as_from_honest_reports(
    epsilon: float, d: int, r: int, n: int
) -> None:
    """Their errors are noise of the stated deviation, within a quarter, of d items."""
    oracle, truth = frequency_oracle("llh", epsilon, d), truth_of(d)
    rng = np.random.default_rng(2)
    targets = tuple((d // 3 + rng.choice(2 * d // 3, r, replace=False)).tolist())
    honest, tally = attacked(oracle, targets, n)
    result = estimates_of_histogram(oracle, tally)
    poisoned, clean = (oracle.estimate(t.counts(oracle), t.n) for t in (tally, honest))
    after = ((result.z - truth) ** 2).mean()
    assert after < 0.2 * ((poisoned - truth) ** 2).mean()
    assert after < 2 * ((clean - truth) ** 2).mean()
    assert 0.75 < np.std((result.z - truth) / result.sd) < 1.3
    (dropped,) = result.dropped
    assert 0.95 * (tally.n - honest.n) < dropped.reports < 2 * (tally.n - honest.n)
    assert result.n == tally.n - dropped.reports


@pytest.mark.parametrize(
    ("protocol", "epsilon", "d", "shape", "n"),
    [
        ("hr", 1.0, 102, SPREAD, 1_000),
        ("llh", 1.0, 102, "item 0", 10**8),
        pytest.param("hr", 1.0, 102, "item 0", 10**8, marks=pytest.mark.statistical),
        pytest.param("llh", 0.5, 300, SPREAD, 10**8, marks=pytest.mark.statistical),
        pytest.param("llh", 4.0, 40, "even", 1_000, marks=pytest.mark.statistical),
        pytest.param("llh", 4.0, 40, SPREAD, 10**8, marks=pytest.mark.statistical),
    ],
)
def test_clean_rounds_lose_no_report(
    protocol: str, epsilon: float, d: int, shape: str, n: int
) -> None:
    oracle = frequency_oracle(protocol, epsilon, d)
    even = np.full(d, 1 / d)
    frequencies = {"item 0": np.eye(d)[0], "even": even, SPREAD: truth_of(d)}[shape]
    tally = oracle.simulation.population_tally(frequencies, n, np.random.default_rng(n + d))
    result = estimates_of_histogram(oracle, tally)
    assert (result.dropped, result.notes, result.n) == ((), (), n)
    np.testing.assert_allclose(result.z, oracle.estimate(tally.counts(oracle), n), atol=1e-12)


def test_unmix_drops_frequent_reports_from_a_tally() -> None:
    oracle, targets = frequency_oracle("llh", 1.0, 102), (40, 57, 66, 70, 83, 99)
    truth = truth_of(102)
    _, tally = attacked(oracle, targets, 100_000)
    result = recover(oracle, tally, "unmix")
    conclusions = result.conclusions
    assert conclusions is not None
    assert conclusions.attack_probability == pytest.approx(1)
    assert conclusions.beta is not None
    assert 0.8 * BETA < conclusions.beta < BETA
    assert [each.screen for each in conclusions.dropped] == ["frequent reports"]
    assert ((result.recovered - truth) ** 2).mean() < 0.1 * ((result.poisoned - truth) ** 2).mean()


@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_reports_have_finite_estimates(n: int) -> None:
    oracle = frequency_oracle("llh", 1.0, 30)
    reports = oracle.perturb(np.arange(n), np.random.default_rng(1))
    result = estimates_of_histogram(oracle, Tally.of(oracle, reports))
    assert np.isfinite(result.z).all()
    assert (result.sd > 0).all()
    assert result.n == n


@pytest.mark.parametrize("protocol", ["llh", "hr"])
@pytest.mark.parametrize("d", [2, 3, 5, 6])
def test_few_items_have_finite_estimates(protocol: str, d: int) -> None:
    oracle = frequency_oracle(protocol, 1.0, d)
    reports = oracle.perturb(np.arange(300) % d, np.random.default_rng(1))
    result = estimates_of_histogram(oracle, Tally.of(oracle, reports))
    assert np.isfinite(result.z).all()
    assert not result.dropped


def test_error_if_no_report_is_left() -> None:
    oracle = frequency_oracle("llh", 1.0, 30)
    with pytest.raises(ParameterError, match="there are no reports"):
        estimates_of_histogram(oracle, Tally.empty(oracle.summary_size))
    reports = np.full(10_000, 77, "<u4")
    with pytest.raises(ParameterError, match="all reports would be dropped"):
        estimates_of_histogram(oracle, Tally.of(oracle, reports))

"""The histogram of a round's reports without the cells that are too full."""

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import FrequencyOracle, ParameterError, Tally
from ldprecover.protocols import HR, LLH
from ldprecover.recovery.unmixing.cells import Cells, without_full_cells
from ldprecover.reports import tally_sampler
from ldprecover_attacker import MGA

ORACLES = [LLH(0.5, 20, 3), LLH(1.0, 30, 2), LLH(2.0, 40, 7), HR(1.0, 20)]


def regressors(oracle: FrequencyOracle) -> np.ndarray:
    """Return what each item's users send, and a constant, as columns over the cells."""
    reports = np.arange(oracle.summary_size, dtype=oracle.wire.dtype)
    return np.column_stack([np.ones(reports.size), oracle.supports(reports).astype(np.float64)])


every_oracle = pytest.mark.parametrize(
    "oracle", ORACLES, ids=lambda oracle: f"{oracle.protocol}-{oracle.domain_size}"
)


@every_oracle
def test_least_squares_are_those_of_the_kept_cells(oracle: FrequencyOracle) -> None:
    rng = np.random.default_rng(1)
    histogram = rng.integers(50, 100, oracle.summary_size)
    dropped = np.sort(rng.choice(oracle.summary_size, 3, replace=False))
    others = np.setdiff1d(np.arange(oracle.summary_size), dropped)
    columns = regressors(oracle)
    solution, *_ = np.linalg.lstsq(columns[others], histogram[others], rcond=None)
    cells = Cells.of(oracle, dropped)
    np.testing.assert_allclose(cells.fit(histogram)[1], columns @ solution, atol=1e-8)
    np.testing.assert_allclose(cells.fit(histogram)[0][others], histogram[others])
    residual = histogram - columns @ solution
    residual[dropped] = 0
    np.testing.assert_allclose(cells.residual(histogram), residual, atol=1e-8)


@every_oracle
def test_estimates_without_dropped_cells_are_unbiased(oracle: FrequencyOracle) -> None:
    """The expectation of an honest histogram gives the frequencies, whatever its cells hold."""
    frequencies = np.random.default_rng(2).dirichlet(np.ones(oracle.domain_size))
    tally = tally_sampler(oracle).population_tally(frequencies, 10**13, np.random.default_rng(3))
    histogram = tally.summary.copy()
    histogram[[1, 4]] = 10**12
    cells = Cells.of(oracle, np.array([1, 4]))
    filled, _ = cells.fit(histogram)
    np.testing.assert_allclose(cells.estimates(filled) / filled.sum(), frequencies, atol=1e-4)


@every_oracle
def test_honest_rounds_lose_no_cell(oracle: FrequencyOracle) -> None:
    """At a probability of 1e-4 each, one of 40 rounds loses a cell with 0.4 %."""
    rng = np.random.default_rng(4)
    for n in (50, 5_000, 500_000, 10**9):
        for _ in range(10):
            weights = rng.dirichlet(np.full(oracle.domain_size, 0.2))
            tally = tally_sampler(oracle).population_tally(weights, n, rng)
            cells, log_p = without_full_cells(oracle, tally.summary)
            assert not cells.dropped.size
            assert log_p > -10


@pytest.mark.parametrize("domain_size", [60, 102])
def test_crafted_reports_are_the_cells_that_are_dropped(domain_size: int) -> None:
    oracle, rng = LLH(0.5, domain_size, 3), np.random.default_rng(5)
    crafted = MGA(rng.choice(domain_size, 10, replace=False).tolist()).reports(oracle, 20_000, rng)
    honest = play(oracle, rng.dirichlet(np.ones(domain_size)), 400_000, tallied=True).tally
    tally = honest + Tally.of(oracle, crafted)
    cells, log_p = without_full_cells(oracle, tally.summary)
    assert set(np.unique(crafted).tolist()) == set(cells.dropped.tolist())
    assert log_p < -100


def test_cells_that_the_others_do_not_determine_remain() -> None:
    """Seeds with the same digit 0 tell alone how many users hold items that differ there."""
    oracle, rng = LLH(0.5, 27, 3), np.random.default_rng(6)
    histogram = (
        tally_sampler(oracle).population_tally(np.full(27, 1 / 27), 10**6, rng).summary.copy()
    )
    histogram[:60] += 10**5
    cells, _ = without_full_cells(oracle, histogram)
    assert cells.inflation.max() < 20
    with pytest.raises(ParameterError, match="do not determine"):
        Cells.of(oracle, np.arange(60))

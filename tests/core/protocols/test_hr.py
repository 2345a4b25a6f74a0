"""Hadamard response: crafted columns, and those of LLH; the rejection and alarm of column 0."""

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest

from ldprecover import ParameterError, RecoveryRequest, ReportError, Tally, recover
from ldprecover.crafting import crafter_of
from ldprecover.crafting.tallies import input_poisoning_tally
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import HR, LLH, PROTOCOLS
from ldprecover.reports import tally_sampler

D = 102


@pytest.mark.slow
@pytest.mark.parametrize(
    "targets", [[3], [0, 1], [0, 1, 2], [0, 1, 3, 7, 15, 31, 63], [5, 40, 77], range(5, D, 10)]
)
@pytest.mark.parametrize("oracle", [HR(0.5, D), *(LLH(0.5, D, g) for g in (2, 3, 5))])
def test_crafted_reports_support_the_most_targets(oracle: HR | LLH, targets: Sequence[int]) -> None:
    """Among all reports but those that support every item: HR's column 0, and seed 0 of LLH."""
    every = np.arange(oracle.summary_size, dtype="<u4")
    reports = every[~oracle.supports(every).all(axis=1)]
    hits = oracle.supports(reports, np.array(targets)).sum(axis=1)
    best = set(reports[hits == hits.max()].tolist())
    crafted = crafter_of(oracle).craft(np.tile(targets, (60_000, 1)), np.random.default_rng(1))
    # One of at most 243 reports is left out with a probability below 243 (242/243)^60000 < 1e-100.
    assert set(crafted.tolist()) == best
    included = np.zeros(D)
    included[list(targets)] = 1
    np.testing.assert_allclose(
        crafter_of(oracle).crafted_support(included, len(targets)),
        oracle.supports(np.array(sorted(best), "<u4")).mean(axis=0),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("d", "n", "limit"), [(D, 1, 1), (D, 100, 10), (100_000, 1, 1), (100_000, 1000, 2)]
)
def test_a_submission_with_too_many_columns_0_is_rejected(d: int, n: int, limit: int) -> None:
    oracle = HR(0.5, d)
    fine = np.ones(n, np.uint32)
    fine[n - limit :] = 0
    oracle.wire.check_submission(fine)
    if n > limit:
        worse = fine.copy()
        worse[: 5 * limit] = 0
        with pytest.raises(ReportError, match="column 0") as refused:
            oracle.wire.check_submission(worse)
        assert refused.value.position == 0


def test_solved_model_subtracts_crafted_columns() -> None:
    """With the true eta and targets the error falls to that of the genuine reports alone, but for
    noise.
    """
    oracle, rng = HR(1.0, D), np.random.default_rng(1)
    truth, targets, n, m = np.full(D, 1 / D), (5, 40, 77), 400_000, 20_000
    genuine = input_poisoning_tally(oracle, truth, n, rng)
    malicious = Tally.of(oracle, crafter_of(oracle).craft(np.tile(targets, (m, 1)), rng))
    total = genuine + malicious
    poisoned = oracle.estimate(total.counts(oracle), total.n)
    result = recover(
        oracle,
        poisoned,
        RecoveryRequest("ldprecover", eta=m / n, targets=targets, malicious_model="solved"),
    )
    clean = oracle.estimate(genuine.counts(oracle), genuine.n)
    # What is left of the malicious reports is their own noise: eta/(p-q) sqrt(pi(1-pi)/m), six
    # standard deviations; 8.4 are missed once in 100.
    noise = 6 * (m / n) / (oracle.p - oracle.q) * 0.5 / np.sqrt(m)
    assert np.abs(result.genuine - clean).max() < noise
    assert np.abs(poisoned - clean)[list(targets)].min() > 5 * noise


def test_the_solved_model_is_of_columns_alone() -> None:
    oracle = PROTOCOLS["grr"](0.5, 8)
    with pytest.raises(ParameterError, match="solved is of hr and llh reports"):
        recover(
            oracle,
            np.full(8, 1 / 8),
            RecoveryRequest("ldprecover", targets=[1], malicious_model="solved"),
        )


def test_many_targets_take_little_memory() -> None:
    """Anybody may name all items but one; a matrix of columns and targets would take 49 GiB."""
    oracle = HR(0.5, 100_000)
    uniform = np.full(oracle.domain_size, 1 / oracle.domain_size)
    recover(
        oracle, uniform, RecoveryRequest("ldprecover", targets=[0], malicious_model="solved")
    )  # what is imported once
    tracemalloc.start()
    try:
        recover(
            oracle,
            uniform,
            RecoveryRequest("ldprecover", targets=range(99_999), malicious_model="solved"),
        )
        assert oracle.laws.hits is not None
        oracle.laws.hits.nonholder_law(np.arange(65_535))  # whose rows are all sums of each other
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_alarms_of_many_columns_are_fast() -> None:
    """A billion reports, of which the excess alarm simulates 200 rounds: reports one by one would
    take hours.
    """
    oracle, rng = HR(0.5, D), np.random.default_rng(1)
    tally = tally_sampler(oracle).population_tally(np.full(D, 1 / D), 10**9, rng)
    assert not any(alarm.raised for alarm in raise_alarms(oracle, tally, rate=1e-6))

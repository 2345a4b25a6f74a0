"""Sets that malicious reports raise, by the histogram of a round's reports."""

from functools import cache

import numpy as np
import pytest

from ldprecover import Tally, project_simplex, recover
from ldprecover.protocols import LLH
from ldprecover.recovery import Recovery
from ldprecover.recovery.unmixing import estimates_of_histogram
from ldprecover.recovery.unmixing.cells import Cells
from ldprecover_attacker import make_attack

D, N, FAKES = 32, 400_000, 21_000
TARGETS = (2, 9, 13, 18, 22, 27, 30)
ORACLE = LLH(0.5, D, 3)


@cache
def played(oracle: LLH, seed: int, targets: tuple[int, ...] = TARGETS) -> tuple[np.ndarray, Tally]:
    """Return what the honest users hold, and the tally with malicious reports."""
    rng = np.random.default_rng([81, seed])
    users = rng.multinomial(N, rng.dirichlet(np.full(D, 0.5)))
    tally = oracle.simulation.honest_tally(users, rng)
    if targets:
        fakes = make_attack("mga", targets=targets).reports(oracle, FAKES, rng)
        tally += Tally.of(oracle, fakes)
    return users / N, tally


def recovered(oracle: LLH, tally: Tally) -> Recovery:
    return recover(oracle, tally, "unmix")


def error(frequencies: np.ndarray, truth: np.ndarray) -> float:
    return float(((frequencies - truth) ** 2).sum())


def test_honest_rounds_show_no_set() -> None:
    """With evidence of 6 nats beyond the price, one of 3 rounds shows a set with 0.8 %."""
    oracle = LLH(1.0, D, 3)
    for seed in range(3):
        _, tally = played(oracle, seed, ())
        estimates = estimates_of_histogram(oracle, tally)
        assert not estimates.suspects
        assert not estimates.dropped


def test_named_targets_are_measured_and_not_searched() -> None:
    _, tally = played(ORACLE, 1)
    named = estimates_of_histogram(ORACLE, tally, TARGETS[:2] + TARGETS[4:])
    assert not named.suspects
    assert named.additions


def test_reports_of_private_coins_that_remain_show_their_set() -> None:
    """Of half of the targets in each report, the fullest cells are dropped, and others remain."""
    oracle, rng = LLH(0.5, D, 3), np.random.default_rng(7)
    users = rng.multinomial(N, rng.dirichlet(np.full(D, 0.5)))
    fakes = make_attack("apa", targets=TARGETS).reports(oracle, FAKES, rng)
    tally = oracle.simulation.honest_tally(users, rng) + Tally.of(oracle, fakes)
    truth, result = users / N, recovered(oracle, tally)
    projected = project_simplex(oracle.estimate(tally.counts(oracle), tally.n))
    assert error(result.recovered, truth) < error(projected, truth) / 2
    assert result.conclusions is not None
    (dropped,) = result.conclusions.dropped
    assert dropped.screen == "frequent reports"
    assert dropped.reports < tally.n / 5


def test_set_that_others_conceal_does_not_lower_popular_items() -> None:
    """Reports with the non-linear part alone of a set's law add nothing to the set."""
    oracle, rng = LLH(0.5, 57, 3), np.random.default_rng([5, 8, 5, 10])
    f = 0.9 ** np.arange(57)
    truth, popular = f / f.sum(), np.arange(57) < 8
    cells = Cells.of(oracle, np.empty(0, np.int64))
    law = np.exp(1.5 * np.rint(cells.sums.masses(popular.astype(float))))
    law[0] = 0.0
    part = cells.residual(law / law.sum())
    fakes = rng.multinomial(22_222, (1 - part / part.min()) / part.size)
    users = rng.multinomial(200_000, truth)
    tally = oracle.simulation.honest_tally(users, rng) + Tally(fakes, 22_222)
    result = recovered(oracle, tally)
    assert abs(float((result.recovered - truth)[popular].sum())) < 0.2
    assert result.conclusions is not None
    assert not set(np.flatnonzero(popular)) & {item for item, _ in result.conclusions.suspects}


@pytest.mark.parametrize(
    "number", [10, *(pytest.param(n, marks=pytest.mark.statistical) for n in (3, 5))]
)
def test_harmless_reports_take_nothing_from_popular_items(number: int) -> None:
    """No honest law fits this world well, and only the sum tells framing from raising.

    Odds of 9 to 1 take noise of 2.1 standard deviations in the sum: a false alarm of 2 % at most.
    """
    oracle, rng = LLH(0.5, 57, 3), np.random.default_rng([9, number, 50, 0, 5])
    f = 0.9 ** np.arange(57)
    users = rng.multinomial(200_000, f / f.sum())
    truth, popular = users / 200_000, np.arange(57) < number
    cells = Cells.of(oracle, np.empty(0, np.int64))
    law = np.exp(1.5 * np.rint(cells.sums.masses(popular.astype(float))))
    law[0] = 0.0
    part = cells.residual(law / law.sum())
    fakes = rng.multinomial(10_526, (1 - part / part.min()) / part.size)
    tally = oracle.simulation.honest_tally(users, rng) + Tally(fakes, 10_526)
    projected = project_simplex(oracle.estimate(tally.counts(oracle), tally.n))
    assert error(recovered(oracle, tally).recovered, truth) < error(projected, truth) / 0.8


def suspects(domain_size: int, targets: tuple[int, ...]) -> Recovery:
    """Return the recovery from an attack on five items with seven buckets."""
    oracle, rng = LLH(2.0, domain_size, 7), np.random.default_rng(12)
    users = rng.multinomial(95_000, np.full(domain_size, 1 / domain_size))
    fakes = make_attack("mga", targets=targets).reports(oracle, 5_000, rng)
    return recovered(oracle, oracle.simulation.honest_tally(users, rng) + Tally.of(oracle, fakes))


def test_dropped_reports_name_items_that_only_they_support_most() -> None:
    conclusions = suspects(1024, (73, 264, 505, 748, 999)).conclusions
    assert conclusions is not None
    assert sorted(item for item, _ in conclusions.suspects) == [73, 264, 505, 748, 999]


def test_note_says_that_dropped_reports_support_many_items_alike() -> None:
    result = suspects(60, (5, 15, 25, 35, 45))
    assert result.conclusions is not None
    assert not result.conclusions.suspects
    assert any("support many items alike" in note for note in result.notes)

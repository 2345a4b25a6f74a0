"""Estimates from a histogram, without reports that are too frequent, and the sets that it shows."""

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import Round, play

from ldprecover import ParameterError, Tally
from ldprecover.protocols import HR, LLH
from ldprecover.recovery.unmixing import estimates_of_histogram
from ldprecover.recovery.unmixing.cells import Cells
from ldprecover_attacker import APA, MGA, Attack


def zipf(oracle: HR | LLH, n: int, *attacks: Attack) -> Round:
    """Return the tally of a round of n users and n/19 malicious ones."""
    law = 1 / np.arange(1, oracle.domain_size + 1)
    return play(oracle, law, n, *attacks, m=n // 19, tallied=True)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("oracle", "r"),
    [
        (LLH(1.0, 102, 3), 30),
        (LLH(0.5, 102, 3), 3),
        (LLH(2.0, 300, 7), 10),
        (LLH(1.0, 1024, 3), 10),
    ],
)
def test_estimates_are_as_good_as_from_honest_reports(oracle: LLH, r: int) -> None:
    """Their errors are noise of the stated deviation, within a quarter, of d items."""
    n, d = 1_000_000, oracle.domain_size
    targets = d // 3 + np.random.default_rng(2).choice(2 * d // 3, r, replace=False)
    round = zipf(oracle, n, MGA(targets.tolist()))
    result = estimates_of_histogram(oracle, round.tally)
    after = ((result.z - round.truth) ** 2).mean()
    assert after < 0.2 * ((round.estimates - round.truth) ** 2).mean()
    assert after < 2 * np.mean(oracle.variance(round.truth, n))
    assert 0.75 < np.std((result.z - round.truth) / result.sd) < 1.3
    (dropped,) = result.dropped
    assert 0.95 < dropped.reports / (n // 19) < 2
    assert result.n == round.tally.n - dropped.reports


@pytest.mark.parametrize(
    ("oracle", "weights", "n"),
    [
        (HR(1.0, 102), 1 / np.arange(1, 103), 1_000),
        (LLH(0.5, 300, 3), 1 / np.arange(1, 301), 10**6),
        (LLH(4.0, 40, 53), 1 / np.arange(1, 41), 10**6),
        (LLH(1.0, 32, 3), 0.9 ** np.arange(32), 400_000),
        *[(oracle, np.eye(102)[0], 10**6) for oracle in (HR(1.0, 102), LLH(1.0, 102, 3))],
        *[(LLH(1.0, 30, 3), np.ones(30), n) for n in (1, 2, 10)],
        *[(LLH(1.0, d, 3), np.ones(d), 300) for d in (2, 3, 5, 6)],
        *[(HR(1.0, d), np.ones(d), 300) for d in (2, 3, 5, 6)],
    ],
)
def test_clean_rounds_lose_no_report(oracle: HR | LLH, weights: np.ndarray, n: int) -> None:
    """Evidence of 6 nats beyond the price shows a set in 0.3 % of rounds."""
    round = play(oracle, weights, n, tallied=True)
    result = estimates_of_histogram(oracle, round.tally)
    assert (result.dropped, result.suspects, result.notes, result.n) == ((), {}, (), n)
    np.testing.assert_allclose(result.z, round.estimates, atol=1e-12)
    assert (result.sd > 0).all()
    assert np.isfinite(result.sd).all()


def test_error_if_no_report_is_left() -> None:
    oracle = LLH(1.0, 30, 3)
    reports = np.full(10_000, 77, "<u4")
    with pytest.raises(ParameterError, match="all reports would be dropped"):
        estimates_of_histogram(oracle, Tally.of(oracle, reports))


def test_unmix_drops_frequent_reports_from_a_tally() -> None:
    round = zipf(LLH(1.0, 102, 3), 95_000, MGA((40, 57, 66, 70, 83, 99)))
    _, conclusions, gain = round.unmixed()
    assert conclusions.attack_probability == pytest.approx(1)
    assert 0.04 < conclusions.beta < 0.05
    assert [each.screen for each in conclusions.dropped] == ["frequent reports"]
    assert gain > 4


def test_named_targets_are_measured_and_not_searched() -> None:
    targets = (2, 9, 13, 18, 22, 27, 30)
    round = zipf(LLH(0.5, 32, 3), 400_000, MGA(targets))
    named = estimates_of_histogram(LLH(0.5, 32, 3), round.tally, targets[:2] + targets[4:])
    assert not named.suspects
    assert named.additions


def test_reports_of_private_coins_that_remain_show_their_set() -> None:
    """Of half of the targets in each report, the fullest cells are dropped, and others remain."""
    round = zipf(LLH(0.5, 32, 3), 400_000, APA((2, 9, 13, 18, 22, 27, 30)))
    _, conclusions, gain = round.unmixed()
    assert gain > 2
    (dropped,) = conclusions.dropped
    assert dropped.reports < round.tally.n / 5


@pytest.mark.parametrize(("number", "m"), [(3, 10_526), (5, 10_526), (8, 22_222), (10, 10_526)])
def test_set_that_others_conceal_does_not_lower_popular_items(number: int, m: int) -> None:
    """Reports with the non-linear part alone of a set's law add nothing to the set.

    No honest law fits this world well, and only the sum tells framing from raising. Odds of 9 to 1
    take noise of 2.1 standard deviations in the sum: a false alarm of 2 % at most.
    """
    oracle, rng = LLH(0.5, 57, 3), np.random.default_rng([9, number])
    popular = np.arange(57) < number
    cells = Cells.of(oracle, np.empty(0, np.int64))
    law = np.exp(1.5 * np.rint(cells.sums.masses(popular.astype(float))))
    law[0] = 0.0
    part = cells.residual(law / law.sum())
    fakes = Tally(rng.multinomial(m, (1 - part / part.min()) / part.size), m)
    honest = play(oracle, 0.9 ** np.arange(57), 200_000, tallied=True)
    _, conclusions, gain = honest._replace(data=honest.data + fakes).unmixed()
    assert gain > 0.8
    assert not {*range(number)} & {item for item, _ in conclusions.suspects}


@pytest.mark.parametrize(
    ("d", "targets", "named"),
    [
        pytest.param(1024, [73, 264, 505, 748, 999], True, marks=pytest.mark.statistical),
        (60, [5, 15, 25, 35, 45], False),
    ],
)
def test_names_items_that_dropped_reports_support_most(
    d: int, targets: list[int], named: bool
) -> None:
    """Where they support many items alike, a note says so."""
    round = play(LLH(2.0, d, 7), np.ones(d), 95_000, MGA(targets), m=5_000, tallied=True)
    result, conclusions, _ = round.unmixed()
    assert sorted(item for item, _ in conclusions.suspects) == (targets if named else [])
    assert any("support many items alike" in note for note in result.notes) != named

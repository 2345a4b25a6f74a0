"""Attacks on un-mixing itself: whoever knows how it works must not turn it against the round."""

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ldprecover import (
    GRR,
    OLH,
    OUE,
    CountsAloneWarning,
    FrequencyOracle,
    RecoveryRequest,
    Tally,
    project_simplex,
    recover,
)
from ldprecover.protocols import SS, SUE
from ldprecover.recovery import Recovery
from ldprecover_attacker import APA, MGA, Joint

N, LARGE, D = 20_000, 100_000, 100
STEPS = np.repeat([0.0938, 0.03, 0.004, 0.0013], [5, 10, 25, 60])
STEPS /= STEPS.sum()
TWO = np.append([0.45, 0.25], np.full(98, 0.3 / 98))
ZIPF = np.arange(1.0, D + 1) ** -1.1
ZIPF /= ZIPF.sum()
TOP = (0, 1, 2, 3, 4)


@cache
def honest(
    oracle: FrequencyOracle, world: str, seed: int = 1, n: int = N
) -> tuple[np.ndarray, np.ndarray]:
    """Return what n users hold and their reports."""
    rng = np.random.default_rng([80, seed])
    law = {"steps": STEPS, "two": TWO, "zipf": ZIPF}[world]
    counts = rng.multinomial(n, law)
    return counts / n, oracle.perturb(np.repeat(np.arange(D), counts), rng)


def ratio(result: Recovery, truth: np.ndarray) -> float:
    """Return projection's squared error over the recovery's."""
    errors = [
        ((f - truth) ** 2).mean() for f in (project_simplex(result.poisoned), result.recovered)
    ]
    return float(errors[0] / errors[1])


def innocent(result: Recovery, items: tuple[int, ...]) -> float:
    """Return the largest probability stated that one of the items was raised."""
    assert result.conclusions is not None
    return max((p for item, p in result.conclusions.suspects if item in items), default=0.0)


ORACLES: list[FrequencyOracle] = [OUE(1.0, D), SUE(1.0, D), OLH(1.0, D, 4), SS(1.0, D, 27)]
WORLDS = list(zip(ORACLES, ["steps", "zipf", "steps", "two"], strict=True))
by_protocol = pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.protocol)


def name_of(value: Any) -> str:
    return value if isinstance(value, str) else value.protocol


@pytest.mark.parametrize(("oracle", "world"), WORLDS, ids=name_of)
def test_framed_popular_items_keep_their_users(oracle: FrequencyOracle, world: str) -> None:
    """5 % of the reports support all of the five most popular items, or none of them.

    Their counts do not move, but too many reports share them.
    """
    truth, reports = honest(oracle, world)
    framing = Joint(TOP).reports(oracle, N // 20, np.random.default_rng(2))
    result = recover(oracle, np.concatenate([reports, framing]), "unmix")
    assert ratio(result, truth) > 0.8
    assert result.recovered[list(TOP)].sum() > 0.9 * truth[list(TOP)].sum()
    assert innocent(result, TOP) <= 0.6


@pytest.mark.parametrize(("oracle", "t"), [(OUE(4.0, D), 5), (OLH(0.5, D, 3), 3)])
def test_framing_by_many_reports_has_no_honest_reports_dropped(
    oracle: FrequencyOracle, t: int
) -> None:
    """A fifth of the reports support all of the popular items or none of them."""
    truth, reports = honest(oracle, "steps")
    framing = Joint(TOP[:t]).reports(oracle, N // 4, np.random.default_rng(6))
    result = recover(oracle, np.concatenate([reports, framing]), "unmix")
    assert ratio(result, truth) > 0.8
    assert innocent(result, TOP) <= 0.6


def test_three_framed_items_are_no_suspects() -> None:
    """Their histogram has four numbers, which fit any total; over four rounds."""
    oracle, three = OLH(0.5, D, 3), TOP[:3]
    for seed in range(4):
        truth, reports = honest(oracle, "steps", seed)
        framing = Joint(three).reports(oracle, N // 20, np.random.default_rng(seed))
        result = recover(oracle, np.concatenate([reports, framing]), "unmix")
        assert ratio(result, truth) > 0.8
        assert innocent(result, three) <= 0.6


def test_framing_by_subsets_is_no_proof_of_an_attack() -> None:
    """Each of 5 % of the reports supports four of six popular items, or none of these four."""
    oracle, popular = OUE(0.5, D), range(6)
    truth, reports = honest(oracle, "zipf")
    rng = np.random.default_rng(7)
    subsets = list(combinations(popular, 4))
    framing = [Joint(each).reports(oracle, N // 20 // len(subsets), rng) for each in subsets]
    result = recover(oracle, np.concatenate([reports, *framing]), "unmix")
    assert ratio(result, truth) > 0.8
    assert innocent(result, tuple(popular)) <= 0.6


def test_framing_does_not_help_a_rival() -> None:
    """5 % of reports frame the first four items and always support the fifth."""
    oracle = ORACLES[0]
    truth, reports = honest(oracle, "steps", n=LARGE)
    rival = Joint(TOP[:4], item=4).reports(oracle, LARGE // 20, np.random.default_rng(3))
    result = recover(oracle, np.concatenate([reports, rival]), "unmix")
    assert ratio(result, truth) > 5
    assert result.recovered[4] < 1.5 * truth[4]
    assert innocent(result, TOP[:4]) <= 0.6
    assert innocent(result, TOP[4:]) > 0.6


@pytest.mark.parametrize("world", ["steps", "zipf"])
def test_few_reports_do_not_frame_items_beside_a_rival(world: str) -> None:
    """2 % of reports do so: the counterpart of those that support all five supports the rival."""
    oracle = SUE(0.5, D)
    truth, reports = honest(oracle, world, n=LARGE)
    rival = Joint(TOP[:4], item=4).reports(oracle, LARGE // 50, np.random.default_rng(3))
    result = recover(oracle, np.concatenate([reports, rival]), "unmix")
    assert ratio(result, truth) > 0.8
    assert innocent(result, TOP[:4]) <= 0.6


def test_items_that_reports_avoid_are_not_erased() -> None:
    """5 % of reports support none of the five most popular items: no honest report is dropped."""
    oracle = ORACLES[0]
    truth, reports = honest(oracle, "zipf")
    avoiding = Joint(TOP, rate=0.0).reports(oracle, N // 20, np.random.default_rng(4))
    result = recover(oracle, np.concatenate([reports, avoiding]), "unmix")
    assert ratio(result, truth) > 0.95
    assert result.conclusions is not None
    assert not result.conclusions.dropped


def test_bait_does_not_have_honest_reports_dropped() -> None:
    """0.1 % of reports support 20 unpopular items, so that filters would drop what looks alike."""
    oracle = ORACLES[0]
    truth, reports = honest(oracle, "zipf")
    bait = Joint(tuple(range(70, 90)), rate=1.0).reports(
        oracle, N // 1000, np.random.default_rng(5)
    )
    result = recover(oracle, np.concatenate([reports, bait]), "unmix")
    assert result.conclusions is not None
    assert sum(each.reports for each in result.conclusions.dropped) < N / 20
    assert ratio(result, truth) > 0.95


@pytest.mark.parametrize(("oracle", "world"), [*WORLDS[1:], (GRR(1.0, D), "two")], ids=name_of)
def test_popular_items_may_be_named_as_targets(oracle: FrequencyOracle, world: str) -> None:
    """Nobody attacks."""
    truth, reports = honest(oracle, world)
    result = recover(oracle, reports, RecoveryRequest("unmix", targets=TOP))
    assert ratio(result, truth) > 1


@pytest.mark.parametrize(
    ("oracle", "world"),
    [
        (SS(4.0, D, 2), "steps"),
        (OLH(4.0, D, 56), "two"),
        (OUE(10.0, D), "zipf"),
        (GRR(8.0, D), "zipf"),
    ],
    ids=name_of,
)
def test_frequencies_of_no_listed_shape_are_no_attack(oracle: FrequencyOracle, world: str) -> None:
    """With little noise the estimates fit no lognormal law, and equal spikes would explain them.

    At epsilon 6, OUE rounds of "steps" and OLH rounds of "zipf" with N users still look attacked.
    """
    truth, reports = honest(oracle, world)
    result = recover(oracle, reports, "unmix")
    assert ratio(result, truth) > 0.9
    assert result.conclusions is not None
    assert (result.conclusions.attack_probability or 0.0) < 0.5


@pytest.mark.parametrize(
    ("epsilon", "power", "seed"), [(6.0, 1.1, [81, 10]), (10.0, 1.05, [0, 105])]
)
def test_zipf_between_the_listed_powers_is_no_attack(
    epsilon: float, power: float, seed: list[int]
) -> None:
    """Powers of 1 and 1.25 are listed; with little noise, others fitted an attack better."""
    oracle, rng = SS(epsilon, 200, 1), np.random.default_rng(seed)
    law = np.arange(1.0, 201) ** -power
    tally = oracle.simulation.honest_tally(rng.multinomial(200_000, law / law.sum()), rng)
    counts = tally.counts(oracle)
    with pytest.warns(CountsAloneWarning):
        result = recover(oracle, oracle.estimate(counts, tally.n), "unmix", n=tally.n)
    assert result.conclusions is not None
    assert (result.conclusions.attack_probability or 0.0) < 0.1


@pytest.mark.parametrize("oracle", [OUE(0.5, D), GRR(1.0, D)], ids=lambda oracle: oracle.protocol)
def test_poisoned_earlier_round_does_not_delete_the_winner(oracle: FrequencyOracle) -> None:
    """5 % of the earlier reports never support item 0; the round itself is clean."""
    truth, reports = honest(oracle, "zipf", n=LARGE)
    rng = np.random.default_rng(6)
    others = rng.integers(1, D, size=LARGE // 20)
    avoiding = oracle.perturb(others, rng)
    avoiding = avoiding[~oracle.supports(avoiding, np.array([0]))[:, 0]]
    earlier = np.concatenate([honest(oracle, "zipf", 9, LARGE)[1], avoiding])
    request = RecoveryRequest("unmix", history=[(oracle, Tally.of(oracle, earlier))])
    result = recover(oracle, reports, request)
    assert ratio(result, truth) > 0.95
    assert result.recovered[0] > 0.8 * truth[0]
    assert innocent(result, (0,)) <= 0.6


@by_protocol
def test_starved_canaries_do_not_mislead(oracle: FrequencyOracle) -> None:
    """1 % of reports never support the canaries, and are honest otherwise."""
    rng = np.random.default_rng(7)
    canaries = tuple(range(95, 100))
    law = np.append(ZIPF[:95] / ZIPF[:95].sum(), np.zeros(5))
    counts = rng.multinomial(N, law)
    reports = oracle.perturb(np.repeat(np.arange(D), counts), rng)
    starving = Joint(canaries, rate=0.0).reports(oracle, N // 100, rng)
    request = RecoveryRequest("unmix", canaries=canaries)
    result = recover(oracle, np.concatenate([reports, starving]), request)
    assert ratio(result, counts / N) > 0.9


def covered(result: Recovery, truth: np.ndarray) -> float:
    conclusions: Any = result.conclusions
    return float(((conclusions.lower <= truth) & (truth <= conclusions.upper)).mean())


@pytest.mark.parametrize(
    ("attack", "rounds"),
    [(APA((20, 40, 60, 80)), 2), (MGA((20, 40, 60, 80)), 1)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_intervals_hold_where_reports_have_subsets(attack: Any, rounds: int) -> None:
    """Reports of subset selection share targets; the mean over the rounds."""
    oracle, shares, ratios = ORACLES[3], [], []
    for seed in range(rounds):
        truth, reports = honest(oracle, "zipf", seed)
        crafted = attack.reports(oracle, N // 20, np.random.default_rng(seed))
        result = recover(oracle, np.concatenate([reports, crafted]), "unmix")
        shares.append(covered(result, truth))
        ratios.append(ratio(result, truth))
    assert np.mean(shares) > 0.9
    # Half of four targets in each report may as well be popular items, framed.
    assert np.exp(np.log(ratios).mean()) > (4 if attack.name == "mga" else 0.95)

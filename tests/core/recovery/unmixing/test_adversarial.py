"""Attacks on un-mixing itself: whoever knows how it works must not turn it against the round."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import GRR, OLH, OUE, FrequencyOracle, Tally
from ldprecover.protocols import SS, SUE
from ldprecover_attacker import Attack, Joint

N, D = 20_000, 100
LARGE = 5 * N
STEPS = np.repeat([0.0938, 0.03, 0.004, 0.0013], [5, 10, 25, 60])
TWO = np.append([0.45, 0.25], np.full(98, 0.3 / 98))
ZIPF = np.arange(1.0, D + 1) ** -1.1
NOT_LAST = np.append(ZIPF[:95], np.zeros(5))
TOP, LAST = (0, 1, 2, 3, 4), tuple(range(95, 100))
Fields = dict[str, Any]

OUE_, SUE_, OLH_, SS_ = OUE(1.0, D), SUE(1.0, D), OLH(1.0, D, 4), SS(1.0, D, 27)
FRAME, THREE, RIVAL = Joint(TOP), Joint(TOP[:3]), Joint(TOP[:4], item=4)
SUBSETS = [Joint(items) for items in combinations(range(6), 4)]
FRAMED: Fields = {"innocent": TOP, "share_left": 0.85}
STARVED: Fields = {"share": 0.01, "canaries": LAST, "least_gain": 0.9}
CLEAN: Fields = {"least_gain": 0.9, "most_attacked": 0.5}
AVOIDED: Fields = {"least_gain": 0.95, "most_dropped": 0.0}
STRONG: Fields = {"n": LARGE, "innocent": TOP[:4], "guilty": TOP[4:], "least_gain": 5.0}
WEAK: Fields = {"n": LARGE, "innocent": TOP[:4], "share": 0.02}
CASES: dict[str, tuple[FrequencyOracle, np.ndarray, list[Joint], Fields]] = {
    "reports avoid popular items": (OUE_, ZIPF, [Joint(TOP, rate=0.0)], AVOIDED),
    "few share unpopular items": (
        *(OUE_, ZIPF, [Joint(range(70, 90))]),
        {"share": 0.001, "least_gain": 0.95, "most_dropped": 0.05},
    ),
    "framed, oue": (OUE_, STEPS, [FRAME], FRAMED),
    "framed, sue": (SUE_, ZIPF, [FRAME], FRAMED),
    "framed, olh": (OLH_, STEPS, [FRAME], FRAMED),
    "framed, ss": (SS_, TWO, [FRAME], FRAMED),
    "three are framed": (OLH(0.5, D, 3), STEPS, [THREE], {"innocent": TOP[:3]}),
    "framed by many": (OLH(0.5, D, 3), STEPS, [THREE], {"innocent": TOP[:3], "share": 0.25}),
    "framed by a fifth": (
        *(OUE(2.0, D), ZIPF**0.7, [FRAME]),
        {"n": 2 * LARGE, "innocent": TOP, "share": 0.25, "least_gain": 2.0},
    ),
    "framed by subsets": (OUE(0.5, D), ZIPF, SUBSETS, {"innocent": range(6)}),
    "a rival": (OUE_, STEPS, [RIVAL], STRONG),
    "a weak rival": (SUE(0.5, D), STEPS, [RIVAL], WEAK),
    "popular targets, grr": (GRR(1.0, D), TWO, [], {"targets": TOP, "least_gain": 1.0}),
    "popular targets, sue": (SUE_, ZIPF, [], {"targets": TOP, "least_gain": 1.0}),
    "popular targets, ss": (SS_, TWO, [], {"targets": TOP, "least_gain": 1.0}),
    # With little noise the estimates fit no lognormal law, and equal spikes would explain them.
    "clean, olh": (OLH(4.0, D, 56), TWO, [], CLEAN),
    "clean, ss": (SS(6.0, D, 1), ZIPF, [], CLEAN | {"n": LARGE}),
    "canaries starve, oue": (OUE_, NOT_LAST, [Joint(LAST, rate=0.0)], STARVED),
    "canaries starve, olh": (OLH_, NOT_LAST, [Joint(LAST, rate=0.0)], STARVED),
}


def play_case(
    oracle: FrequencyOracle,
    weights: np.ndarray,
    *attacks: Attack,
    n: int = N,
    share: float = 0.05,
    least_gain: float = 0.8,
    innocent: Sequence[int] = (),
    guilty: Sequence[int] = (),
    share_left: float = 0.0,
    most_dropped: float = 1.0,
    most_attacked: float = 1.0,
    **assumptions: Any,
) -> None:
    """Assert that attacks by a share of the reports do little harm.

    Of the popular items the `innocent` are no suspects and keep `share_left` of their users; the
    `guilty` are suspects.
    """
    round = play(oracle, weights, n, *attacks, m=int(share * n))
    result, conclusions, gain = round.unmixed(**assumptions)
    suspects = {item for item, _ in conclusions.suspects}
    assert gain > least_gain
    assert not suspects & {*innocent}
    assert suspects >= {*guilty}
    remaining, truth = (f[list(innocent)].sum() for f in (result.recovered, round.truth))
    assert remaining >= share_left * truth
    assert sum(each.reports for each in conclusions.dropped) <= most_dropped * n
    assert conclusions.attack_probability <= most_attacked


OF_ANOTHER_PROTOCOL = {"framed, sue", "framed, ss", "a weak rival", "popular targets, sue"}
OF_ANOTHER_PROTOCOL |= {"popular targets, ss", "clean, ss", "canaries starve, olh"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.statistical) if name in OF_ANOTHER_PROTOCOL else name
        for name in CASES
    ],
)
def test_attack_on_unmixing_does_little_harm(name: str) -> None:
    oracle, weights, attacks, fields = CASES[name]
    play_case(oracle, weights, *attacks, **fields)


@pytest.mark.parametrize("oracle", [OUE(0.5, D), GRR(1.0, D)], ids=lambda oracle: oracle.protocol)
def test_poisoned_earlier_round_does_not_delete_the_winner(oracle: FrequencyOracle) -> None:
    """5 % of the earlier reports never support item 0; the round itself is clean."""
    avoiding = play(oracle, np.arange(D) > 0, LARGE // 20, seed=2).data
    avoiding = avoiding[~oracle.supports(avoiding, np.array([0]))[:, 0]]
    earlier = play(oracle, ZIPF, LARGE, seed=3).tally + Tally.of(oracle, avoiding)
    round = play(oracle, ZIPF, LARGE)
    result, conclusions, gain = round.unmixed(history=[(oracle, earlier)])
    assert gain > 0.95
    assert result.recovered[0] > 0.8 * round.truth[0]
    assert dict(conclusions.suspects).get(0, 0.0) <= 0.6

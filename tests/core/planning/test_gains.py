"""What malicious users gain, by protocol and attack: the attacks' own laws, and real reports."""

import math
from typing import Any

import numpy as np
import pytest

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.estimation.theory import worst_change
from ldprecover.planning.gains import gains
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import APA, APA2, MGA, MGAA, RIA, RPA, Attack

D, R = 102, 10
ATTACKS: dict[str, Attack] = {
    "mga": MGA(range(R)),
    "mga-a": MGAA(range(R)),
    "apa": APA(range(R)),
    "apa2": APA2(range(R)),
    "mga, sampled": MGA(range(R), model="sampled"),
    "ria": RIA(range(R)),
    "rpa": RPA(),
}

ON_TARGETS = ("hr", "llh")
"""Protocols of which the gain of several targets depends on the targets."""

each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


@each_protocol
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_every_gain_is_that_of_the_attacks_own_law(protocol: str, epsilon: float) -> None:
    oracle = frequency_oracle(protocol, epsilon, D)
    stated = gains(oracle, R, thorough=True)
    assert [each.attack for each in stated] == list(ATTACKS)
    for each in stated:
        attack = ATTACKS[each.attack]
        if each.gain is None and protocol in ON_TARGETS:
            assert each.reason
        elif each.gain is None:
            with pytest.raises(ParameterError):
                attack.gain(oracle, np.zeros(D), 1.0, targets=range(R))
            assert each.reason
        elif each.attack != "mga" or protocol not in ON_TARGETS:
            assert each.gain == pytest.approx(
                attack.gain(oracle, np.zeros(D), 1.0, targets=range(R))
            )


def test_mga_gain_is_that_of_the_best_targets() -> None:
    """A column of Hadamard response supports the items of odd index: no ten others are raised
    further.
    """
    oracle, rng = frequency_oracle("hr", 0.5, D), np.random.default_rng(1)
    (mga, *_) = gains(oracle, R)
    assert mga.gain is not None
    assert mga.gain == pytest.approx(MGA(range(1, 2 * R, 2)).gain(oracle, np.zeros(D), 1.0))
    for _ in range(10):
        targets = rng.choice(D, R, replace=False).tolist()
        assert MGA(targets).gain(oracle, np.zeros(D), 1.0) <= mga.gain * (1 + 1e-9)


@each_protocol
def test_reports_gain_the_stated_amount(protocol: str) -> None:
    """Mean gain of 2,000 reports within 6 standard errors of it: a false alarm in 10^8 of 40
    comparisons.
    """
    oracle, rng, m = frequency_oracle(protocol, 1.0, 40), np.random.default_rng(2), 2_000
    for each in gains(oracle, 6, thorough=True):
        if each.gain is None or (each.attack == "mga" and protocol in ON_TARGETS):
            continue
        hits = oracle.supports(
            ATTACKS_OF_SIX[each.attack].reports(oracle, m, rng), np.arange(6)
        ).sum(axis=1)
        gap = oracle.p - oracle.q
        actual = (hits.mean() - 6 * oracle.q) / gap
        assert actual == pytest.approx(
            each.gain, abs=6 * float(hits.std()) / math.sqrt(m) / gap + 1e-9
        ), each.attack


ATTACKS_OF_SIX: dict[str, Attack] = {
    "mga": MGA(range(6)),
    "mga-a": MGAA(range(6)),
    "apa": APA(range(6)),
    "apa2": APA2(range(6)),
    "mga, sampled": MGA(range(6), model="sampled"),
    "ria": RIA(range(6)),
    "rpa": RPA(),
}


@each_protocol
@pytest.mark.parametrize(("d", "r"), [(2, 1), (3, 2), (40, 1), (40, 39), (1_000, 100)])
def test_no_gain_is_above_that_of_any_report(protocol: str, d: int, r: int) -> None:
    oracle = frequency_oracle(protocol, 1.0, d)
    limit = worst_change(oracle, 1.0, r, 0.0).rise
    for each in gains(oracle, r):
        assert each.gain is None or each.gain <= limit + 1e-9


def test_slow_laws_need_thorough() -> None:
    def stated(oracle: FrequencyOracle, **how: Any) -> set[str]:
        return {each.attack for each in gains(oracle, 4, **how) if each.gain is not None}

    searched = frequency_oracle("olh", 1.0, 12)
    assert stated(searched, thorough=True) - stated(searched) == {"mga-a", "apa"}
    many = frequency_oracle("oue", 1.0, 10_001)
    assert stated(many, thorough=True) - stated(many) == {"apa", "apa2"}


@pytest.mark.parametrize("targets", [0, 12, True, 1.5, "few"])
def test_targets_are_some_items_but_not_all(targets: Any) -> None:
    with pytest.raises(ParameterError, match="from 1 to 11"):
        gains(frequency_oracle("grr", 1.0, 12), targets)

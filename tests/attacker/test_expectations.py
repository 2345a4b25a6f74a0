"""The expected support, S and gain of every attack: against the literature's closed forms, and
against real reports.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.attacker.conftest import attacks_on
from tests.attacker.strategies import refusal
from tests.randomness import rng

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import AA, APA, MGA, MLA, RPA, Attack, InputPoisoning, Manip, Several

R, BETA = 10, 0.05
TARGETS = tuple(range(5, 105, 10))

ATTACKS = attacks_on(TARGETS)


def oracle_of(protocol: str, epsilon: float = 0.5, d: int = 102) -> FrequencyOracle:
    return frequency_oracle(protocol, epsilon, d)


ORACLES = [*map(oracle_of, PROTOCOLS)]


CASES = {
    f"{name}, {oracle}": (oracle, attack)
    for name, attack in ATTACKS.items()
    for oracle in ORACLES
    if refusal(attack, oracle) is None
    and not (name in ("mga-a", "apa") and oracle.protocol in ("olh", "llh", "hr"))
}
"""Every attack on every protocol; where reports are searched for, those that search few of them."""


@pytest.mark.slow
@pytest.mark.parametrize(("oracle", "attack"), CASES.values(), ids=CASES)
def test_real_reports_have_the_expected_support(oracle: FrequencyOracle, attack: Attack) -> None:
    """Each item's count within Bernstein's bound of a binomial, S to 7 sd of the reports' own
    sizes.

    Of 5,000 reports, which are independent given the attacker's secrets. Without a fault an item
    fails in at most 3e-12 of all trials, and a sum in 4e-12 (Student's t of 4,999 degrees): 222
    cases of 103 checks, 1e-7 in all. Ten standard deviations are missed once in 100.
    """
    m = 5_000
    pi = attack.support(oracle, rng(), m=m)
    supports = oracle.supports(attack.reports(oracle, m, rng()))
    deviation = np.abs(supports.sum(axis=0) - m * pi)
    level, variance = math.log(2 / 3e-12), m * np.clip(pi * (1 - pi), 0, None)
    bound = np.where(
        variance > 1e-6, level / 3 + np.sqrt(level**2 / 9 + 2 * level * variance), 1e-6
    )
    assert (deviation <= bound).all()

    sizes = supports.sum(axis=1)
    measured = (sizes.mean() - oracle.q * oracle.domain_size) / (oracle.p - oracle.q)
    tolerance = 7 * sizes.std() / math.sqrt(m) / (oracle.p - oracle.q) + 1e-9
    assert abs(measured - attack.support_sum(oracle, rng(), m=m)) <= tolerance


SUMS: list[tuple[str, str, float, float, float]] = [
    ("oue", "mga sampled", -306.30, -114.39, -1502.50),
    ("oue", "mga crafted", -4.16, -1.87, 0.04),
    ("oue", "mga-a", -4.16, -1.87, 0.04),
    ("oue", "rpa", 102, 102, 490),
    ("oue", "mla raw", 518.46, 322.71, 2490.66),
    ("oue", "mla", 102, 102, 490),
    ("olh", "mga sampled", 5.62, 3.33, 5.62),
    ("olh", "mga crafted", 45.32, 24.08, 45.32),
    ("olh", "rpa", 0, 0, 0),
    ("olh", "aa diffuse crafted", 5.62, 3.33, 5.62),
]


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "name", "small", "less_private", "large"), SUMS)
def test_sums_equal_published_numbers(
    protocol: str, name: str, small: float, less_private: float, large: float
) -> None:
    """At d = 102 with epsilon 0.5 and 1, and at d = 490 with 0.5. Computed, no chance in it."""
    settings = ((0.5, 102), (1.0, 102), (0.5, 490))
    sums = [
        ATTACKS[name].support_sum(oracle_of(protocol, epsilon, d), rng()) for epsilon, d in settings
    ]
    assert sums == pytest.approx([small, less_private, large], abs=0.02)


def test_perfect_seeds_have_the_largest_sum() -> None:
    """r(1 - q)/(p - q): 56.24 at epsilon 0.5 and 33.28 at 1, where 20,520 users are more than the
    perfect seeds.
    """
    attack = MGA(TARGETS, search="exhaustive")
    assert attack.support_sum(oracle_of("olh")) == pytest.approx(56.24, abs=0.01)
    assert attack.support_sum(oracle_of("olh", 1.0)) == pytest.approx(33.28, abs=0.01)
    assert attack.support_sum(oracle_of("olh", 1.0), m=20_520) == pytest.approx(32.4, abs=0.1)


Gain = Callable[[FrequencyOracle, float], float]

CLOSED_FORMS: list[tuple[str, str, Gain]] = [
    ("grr", "rpa", lambda o, f_t: BETA * (R / o.domain_size - f_t)),
    ("oue", "rpa", lambda o, f_t: BETA * (R - f_t)),
    ("olh", "rpa", lambda o, f_t: -BETA * f_t),
    (
        "grr",
        "mga crafted",
        lambda o, f_t: BETA * (1 - f_t + (o.domain_size - R) / math.expm1(o.epsilon)),
    ),
    ("oue", "mga crafted", lambda o, f_t: BETA * (2 * R - f_t + 2 * R / math.expm1(o.epsilon))),
    ("grr", "mga-a", lambda o, f_t: BETA * (1 - f_t + (o.domain_size - R) / math.expm1(o.epsilon))),
    ("oue", "apa2", lambda o, f_t: BETA * (R * (0.5 - o.q) / (o.p - o.q) - f_t)),
    *((p, "ria", lambda o, f_t: BETA * (1 - f_t)) for p in PROTOCOLS),
    *((p, "mga input poisoning", lambda o, f_t: BETA * (1 - f_t)) for p in PROTOCOLS),
]


@pytest.mark.parametrize(("protocol", "name", "formula"), CLOSED_FORMS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_gains_equal_closed_forms(protocol: str, name: str, formula: Gain, epsilon: float) -> None:
    """Cao et al., Table 1. No chance in it."""
    oracle, f = oracle_of(protocol, epsilon), np.arange(102) / np.arange(102).sum()
    expected = formula(oracle, float(f[list(TARGETS)].sum()))
    assert ATTACKS[name].gain(oracle, f, BETA, targets=TARGETS) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"targets": [102]}, "from 0 to 101"),
        ({"targets": [-1]}, "from 0 to 101"),
        ({"frequencies": [1.0]}, "of the 102 items"),
        ({"beta": 1.5}, "beta"),
    ],
)
def test_gain_rejects_arguments_that_do_not_fit(changed: dict[str, Any], reason: str) -> None:
    arguments: dict[str, Any] = {
        "frequencies": np.full(102, 1 / 102),
        "beta": BETA,
        "targets": TARGETS,
    } | changed
    with pytest.raises(ParameterError, match=reason):
        MGA(TARGETS).gain(oracle_of("oue"), **arguments)


def test_gain_defaults_to_the_attacks_targets() -> None:
    oracle, f = oracle_of("oue"), np.full(102, 1 / 102)
    aiming: list[Attack] = [
        MGA(TARGETS),
        InputPoisoning(MGA(TARGETS)),
        Several([RPA(), MGA(TARGETS[:5]), APA(TARGETS[3:])]),
    ]
    for attack in aiming:
        assert attack.gain(oracle, f, BETA) == attack.gain(oracle, f, BETA, targets=TARGETS)
    without: list[Attack] = [RPA(), Manip(), MLA(), Several([AA(), RPA()]), InputPoisoning(AA())]
    for attack in without:
        with pytest.raises(ParameterError, match="has no targets"):
            attack.gain(oracle, f, BETA)

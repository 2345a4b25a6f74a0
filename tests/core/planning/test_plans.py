"""Plans of rounds: each of items, users, epsilon and error from the others, against simulated
rounds.
"""

import json
import math
from typing import Any

import numpy as np
import pytest

from ldprecover import ParameterError, frequency_oracle
from ldprecover.estimation.theory import worst_change
from ldprecover.planning import PlannedRound, PlanRequest, plan
from ldprecover.planning.choosing import choose
from ldprecover.protocols import PROTOCOLS

SETTINGS: list[dict[str, Any]] = [
    {"domain_size": 4, "users": 2_000, "epsilon": 0.3},
    {"domain_size": 20, "users": 2_000, "epsilon": 1.0},
    {"domain_size": 30, "users": 1_000, "epsilon": 3.0},
    {"domain_size": 20, "users": 1_500, "epsilon": 6.0},
    {"domain_size": 5, "epsilon": 0.7, "error": 0.06},
    {"domain_size": 16, "epsilon": 1.5, "error": 0.04},
    {"domain_size": 24, "epsilon": 2.5, "error": 0.03},
    {"domain_size": 6, "users": 1_000, "error": 0.08},
    {"domain_size": 17, "users": 2_000, "error": 0.05},
    {"domain_size": 25, "users": 4_000, "error": 0.02},
]
"""With each protocol sixty: four of an unknown error, three of unknown users, three of an unknown
epsilon.
"""


def one(protocol: str, **wish: Any) -> PlannedRound:
    (found,) = plan(PlanRequest(**wish), [protocol]).rounds
    assert found.reason is None
    return found


def simulated(found: PlannedRound, rounds: int, items: int = 1) -> float:
    """Return the root mean square of the errors of a round as planned, of each item or of the first
    ones together.

    Users hold items evenly, and their tallies are drawn from the exact law.
    """
    d, n, epsilon = found.domain_size, found.users, found.epsilon
    assert d is not None
    assert n is not None
    assert epsilon is not None
    oracle, rng = frequency_oracle(found.protocol, epsilon, d), np.random.default_rng(d + n)
    held = np.full(d, n // d) + (np.arange(d) < n % d)
    errors = []
    for _ in range(rounds):
        tally = oracle.simulation.honest_tally(held, rng)
        off = oracle.estimate(tally.counts(oracle), n) - held / n
        errors.append(off if items == 1 else [off[:items].sum()])
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda setting: ",".join(f"{k}={v}" for k, v in setting.items())
)
def test_the_planned_error_is_that_of_simulated_rounds(
    protocol: str, setting: dict[str, Any]
) -> None:
    """Within 5 %.

    The mean square of k independent errors is off by a share of sqrt(2/k), its root by half: with
    4,800 errors and more, those of a round nearly independent, by 1.1 % at most. Four deviations
    that way or the other are 5 %: a false alarm in 10^4 tests. The seed is fixed.
    """
    found = one(protocol, **setting)
    assert found.standard_error is not None
    d = found.domain_size or 1
    assert simulated(found, rounds=math.ceil(4_800 / (d - 1))) == pytest.approx(
        found.standard_error, rel=0.05
    )
    if "error" in setting:
        assert found.standard_error <= setting["error"] * (1 + 1e-9)
        assert found.standard_error == pytest.approx(setting["error"], rel=0.05)


@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS) - {"hr"}))
@pytest.mark.parametrize(("d", "items"), [(6, 3), (12, 11), (20, 5)])
def test_the_planned_error_of_a_sum_is_that_of_simulated_rounds(
    protocol: str, d: int, items: int
) -> None:
    """Within 5 standard errors of a root mean square of 1,000: a false alarm in 10^6."""
    found = one(protocol, domain_size=d, users=1_200, epsilon=1.0, sum_of=items)
    assert found.standard_error is not None
    rounds = 1_000
    assert simulated(found, rounds, items) == pytest.approx(
        found.standard_error, rel=5 * math.sqrt(0.5 / rounds)
    )


def test_the_margin_of_all_items_holds_for_all_of_them() -> None:
    """In at least 95 % of 2,000 rounds, less 4 standard errors of that share."""
    found = one("oue", domain_size=30, users=5_000, epsilon=1.0)
    oracle, rng = frequency_oracle("oue", 1.0, 30), np.random.default_rng(8)
    held = np.zeros(30, np.int64)
    held[:2] = 4_000, 1_000
    within = 0
    for _ in range(2_000):
        off = (
            oracle.estimate(oracle.simulation.honest_tally(held, rng).counts(oracle), 5_000)
            - held / 5_000
        )
        within += bool(np.abs(off).max() <= (found.margin_of_all or 0))
    assert within / 2_000 >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 2_000)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_solution_is_the_least_that_meets_the_error(protocol: str) -> None:
    users = one(protocol, domain_size=50, epsilon=1.0, error=0.01)
    assert users.users is not None
    fewer = one(protocol, domain_size=50, epsilon=1.0, users=users.users - 1)
    assert fewer.standard_error is not None
    assert fewer.standard_error > 0.01
    epsilon = one(protocol, domain_size=50, users=10_000, error=0.02)
    assert epsilon.epsilon is not None
    less = one(protocol, domain_size=50, users=10_000, epsilon=epsilon.epsilon * 0.999)
    assert less.standard_error is not None
    assert less.standard_error > 0.02


def test_the_most_items_are_those_one_more_of_which_is_too_many() -> None:
    found = one("grr", users=400_000, epsilon=0.5, error=0.02)
    assert found.domain_size is not None
    more = one("grr", users=400_000, epsilon=0.5, domain_size=found.domain_size + 1)
    assert more.standard_error is not None
    assert more.standard_error > 0.02 >= (found.standard_error or 1)
    assert one("oue", users=400_000, epsilon=0.5, error=0.02).domain_size == 100_000


def test_protocols_are_in_the_order_of_choice() -> None:
    found = plan(PlanRequest(domain_size=102, users=10_000, epsilon=0.5))
    chosen = choose(102, 0.5, 10_000)
    assert [each.protocol for each in found.rounds] == [
        each.oracle.protocol for each in chosen.candidates
    ]
    assert found.best == found.rounds[0]
    for each, candidate in zip(found.rounds, chosen.candidates, strict=True):
        assert each.standard_error == pytest.approx(candidate.standard_error)
        assert each.hash_tests == candidate.hash_tests


def test_those_that_cannot_have_it_come_last_and_say_why() -> None:
    found = plan(PlanRequest(domain_size=1_000, users=300, error=0.001))
    able = [each.reason is None for each in found.rounds]
    assert able == sorted(able, reverse=True)
    assert 0 < sum(able) < len(able)
    assert {each.reason for each in found.rounds} == {None, "no epsilon up to 10 is enough"}


@pytest.mark.parametrize("error", [1e-9, 1e-160, 5e-324])
def test_refuses_error_that_needs_too_many_users(
    error: float,
) -> None:
    found = plan(PlanRequest(domain_size=10, epsilon=1.0, error=error))
    assert {each.reason for each in found.rounds} == {"more than 1e+12 users are needed"}
    nobody = plan(PlanRequest(domain_size=1_000, users=1, error=1e-9))
    assert nobody.best is None
    assert {each.reason for each in nobody.rounds} == {"no epsilon up to 10 is enough"}
    sums = plan(PlanRequest(domain_size=10, users=100, epsilon=1.0, sum_of=3))
    assert "law of the sum of several estimates" in str(sums.rounds[-1].reason)
    assert "even 2 items are too many" in str(
        plan(PlanRequest(users=10, epsilon=0.1, error=0.01)).rounds[0].reason
    )
    assert "more than 1e+12 users" in str(
        plan(PlanRequest(domain_size=9, epsilon=0.01, error=1e-9)).rounds[0].reason
    )


def test_beta_follows_from_the_tolerated_gain() -> None:
    """No attack then gains more: neither by its law, nor by the bound of any report."""
    for each in plan(PlanRequest(domain_size=102, users=10_000, epsilon=0.5, gain=0.01)).rounds:
        assert each.beta is not None
        assert each.worst is not None
        assert max(gain.gain for gain in each.gains if gain.gain is not None) <= 0.01 + 1e-12
        assert each.worst.rise == pytest.approx(0.01)
        oracle = frequency_oracle(each.protocol, 0.5, 102)
        assert each.worst.rise == pytest.approx(worst_change(oracle, each.beta, 10, 0.0).rise)
    anyone = plan(PlanRequest(domain_size=102, users=10_000, epsilon=0.5, gain=1_000.0)).rounds
    assert {each.beta for each in anyone} == {1.0}


def test_gains_are_of_the_share_of_malicious_users() -> None:
    few, many = (
        plan(PlanRequest(domain_size=20, users=100, epsilon=1.0, beta=beta), ["oue"]).rounds[0]
        for beta in (0.01, 0.1)
    )
    assert [each.gain for each in many.gains] == pytest.approx(
        [10 * (each.gain or 0) for each in few.gains]
    )
    assert one("oue", domain_size=20, users=100, epsilon=1.0).beta == 0.05
    assert one("oue", domain_size=20, users=100, epsilon=1.0, beta=0.0).beta == 0


def test_a_plan_is_json() -> None:
    found = plan(PlanRequest(domain_size=9, users=100, error=0.2))
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert json.loads(json.dumps(found.to_dict(found.curves())))["curves"]["users"]
    assert said["solved"] == "epsilon"
    assert said["wish"]["error"] == 0.2
    assert [each["protocol"] for each in said["protocols"]] == list(found.protocols)
    assert said["curves"] is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_curves_go_through_the_errors_that_plans_have(protocol: str) -> None:
    drawn = plan(PlanRequest(domain_size=30, users=2_000, epsilon=1.0), [protocol]).curves()
    assert drawn is not None
    assert (drawn.epsilon[0], drawn.epsilon[-1]) == pytest.approx((0.1, 10))
    assert drawn.users[len(drawn.users) // 2] == 2_000
    for i in (0, 7, -1):
        at = one(protocol, domain_size=30, users=2_000, epsilon=drawn.epsilon[i])
        assert drawn.over_epsilon[protocol][i] == at.standard_error
        at = one(protocol, domain_size=30, users=drawn.users[i], epsilon=1.0)
        assert drawn.over_users[protocol][i] == at.standard_error


def test_a_protocol_without_a_law_has_no_curve() -> None:
    drawn = plan(
        PlanRequest(domain_size=30, users=1, epsilon=1.0, sum_of=4), ["grr", "hr"]
    ).curves()
    assert drawn is not None
    assert drawn.users == (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    assert set(drawn.over_users["hr"]) == {None}
    assert None not in drawn.over_users["grr"]
    assert plan(PlanRequest(domain_size=1_000, users=1, error=1e-9)).curves() is None


KNOWN = {"domain_size": 10, "users": 100, "epsilon": 1.0}


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({}, "all but one of"),
        ({"domain_size": 10, "users": 100}, "epsilon and error are missing"),
        ({**KNOWN, "error": 0.1}, "all are given"),
        ({**KNOWN, "domain_size": 1}, "domain_size must be an integer from 2 to 100000"),
        ({**KNOWN, "domain_size": True}, "domain_size"),
        ({**KNOWN, "users": 0}, "users must be an integer from 1"),
        ({**KNOWN, "users": 10**13}, "users"),
        ({**KNOWN, "users": 1.5}, "users"),
        ({**KNOWN, "epsilon": 11.0}, "epsilon must be a number from 0.01 to 10"),
        ({**KNOWN, "epsilon": math.nan}, "epsilon"),
        (
            {"domain_size": 10, "users": 100, "error": 0.0},
            "error must be a number above 0 and at most 1",
        ),
        ({**KNOWN, "frequency": 1.5}, "frequency must be a number from 0 to 1"),
        ({**KNOWN, "sum_of": 10}, "sum_of must be an integer from 1 to 9"),
        ({**KNOWN, "targets": 10}, "targets must be an integer from 1 to 9"),
        ({"domain_size": 1_000, "users": 100, "epsilon": 1.0, "targets": 101}, "from 1 to 100"),
        ({**KNOWN, "beta": 1.1}, "beta must be a number from 0 to 1"),
        ({**KNOWN, "beta": 0.1, "gain": 0.1}, "not both"),
        ({**KNOWN, "gain": 0}, "gain must be a number above 0"),
    ],
)
def test_a_wish_that_cannot_be_is_refused(wish: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        PlanRequest(**wish)


def test_protocols_are_named_and_there_are_some() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        plan(PlanRequest(**KNOWN), [])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="protocol must be one of"):
        plan(PlanRequest(**KNOWN), ["rappor"])  # type: ignore[arg-type]

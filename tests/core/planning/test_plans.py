"""Plans: each of items, users, epsilon and error from the others, against simulations."""

import json
import math
from typing import Any

import numpy as np
import pytest

from ldprecover import ParameterError, frequency_oracle
from ldprecover.planning import PlanRequest, plan, plan_form
from ldprecover.planning.choosing import choose, proposed_retention
from ldprecover.protocols import PROTOCOLS
from ldprecover.reports import tally_sampler
from ldprecover_attacker import MGA

SETTINGS: list[dict[str, Any]] = [
    {"domain_size": 4, "users": 2_000, "epsilon": 0.3},
    {"domain_size": 20, "users": 1_500, "epsilon": 6.0},
    {"domain_size": 5, "epsilon": 0.7, "error": 0.06},
    {"domain_size": 24, "epsilon": 2.5, "error": 0.03},
    {"domain_size": 6, "users": 1_000, "error": 0.08},
    {"domain_size": 25, "users": 4_000, "error": 0.02},
]
"""Two each of an unknown error, of unknown users and of an unknown epsilon."""


def one(protocol: str, **request: Any) -> Any:
    (planned,) = plan(PlanRequest(**request), [protocol]).rounds
    assert planned.reason is None
    return planned


def simulated(planned: Any, rounds: int, items: int = 1) -> float:
    """Return the root mean square of the errors of a round as planned, of each item or of the first
    ones together.

    Users hold items evenly, and their tallies are drawn from the exact law.
    """
    d, n, epsilon = planned.domain_size, planned.users, planned.epsilon
    oracle, rng = frequency_oracle(planned.protocol, epsilon, d), np.random.default_rng(d + n)
    counts_of_users = np.full(d, n // d) + (np.arange(d) < n % d)
    errors = []
    for _ in range(rounds):
        tally = tally_sampler(oracle).honest_tally(counts_of_users, rng)
        off = oracle.estimate(tally.counts(oracle), n) - counts_of_users / n
        errors.append(off if items == 1 else [off[:items].sum()])
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda setting: ",".join(f"{k}={v}" for k, v in setting.items())
)
def test_planned_error_is_that_of_simulated_rounds(protocol: str, setting: dict[str, Any]) -> None:
    """Within 5 %.

    The mean square of k independent errors is off by a share of sqrt(2/k), its root by half: with
    4,800 errors and more, those of a round nearly independent, by 1.1 % at most. Four deviations
    that way or the other are 5 %: a false alarm in 10^4 tests. The seed is fixed.
    """
    planned = one(protocol, **setting)
    d = planned.domain_size or 1
    assert simulated(planned, rounds=math.ceil(4_800 / (d - 1))) == pytest.approx(
        planned.standard_error, rel=0.05
    )
    if "error" in setting:
        assert planned.standard_error <= setting["error"] * (1 + 1e-9)
        assert planned.standard_error == pytest.approx(setting["error"], rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS) - {"hr", "llh"}))
@pytest.mark.parametrize(("d", "items"), [(6, 3), (12, 11), (20, 5)])
def test_planned_error_of_a_sum_is_that_of_simulations(protocol: str, d: int, items: int) -> None:
    """Within 5 standard errors of a root mean square of 1,000: a false alarm in 10^6."""
    planned = one(protocol, domain_size=d, users=1_200, epsilon=1.0, sum_of=items)
    rounds = 1_000
    assert simulated(planned, rounds, items) == pytest.approx(
        planned.standard_error, rel=5 * math.sqrt(0.5 / rounds)
    )


def test_margin_of_all_items_holds_for_all() -> None:
    """In at least 95 % of 2,000 rounds, less 4 standard errors of that share."""
    planned = one("oue", domain_size=30, users=5_000, epsilon=1.0)
    oracle, rng = frequency_oracle("oue", 1.0, 30), np.random.default_rng(8)
    counts_of_users = np.zeros(30, np.int64)
    counts_of_users[:2] = 4_000, 1_000
    within = 0
    for _ in range(2_000):
        off = (
            oracle.estimate(
                tally_sampler(oracle).honest_tally(counts_of_users, rng).counts(oracle), 5_000
            )
            - counts_of_users / 5_000
        )
        within += bool(np.abs(off).max() <= planned.margin_of_all)
    assert within / 2_000 >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 2_000)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_solution_is_the_least_that_meets_the_error(protocol: str) -> None:
    users = one(protocol, domain_size=50, epsilon=1.0, error=0.01)
    fewer = one(protocol, domain_size=50, epsilon=1.0, users=users.users - 1)
    assert fewer.standard_error > 0.01
    epsilon = one(protocol, domain_size=50, users=10_000, error=0.02)
    less = one(protocol, domain_size=50, users=10_000, epsilon=epsilon.epsilon * 0.999)
    assert less.standard_error > 0.02


def test_one_more_than_the_planned_items_is_too_many() -> None:
    planned = one("grr", users=400_000, epsilon=0.5, error=0.02)
    more = one("grr", users=400_000, epsilon=0.5, domain_size=planned.domain_size + 1)
    assert more.standard_error > 0.02 >= planned.standard_error
    assert one("oue", users=400_000, epsilon=0.5, error=0.02).domain_size == 100_000


def test_protocols_are_in_the_order_of_choice() -> None:
    planned = plan(PlanRequest(domain_size=102, users=10_000, epsilon=0.5))
    chosen = choose(102, 0.5, 10_000)
    assert [each.protocol for each in planned.rounds] == [
        each.oracle.protocol for each in chosen.candidates
    ]
    assert planned.best == planned.rounds[0]
    for each, candidate in zip(planned.rounds, chosen.candidates, strict=True):
        assert each.standard_error == pytest.approx(candidate.standard_error)
        assert each.stored_bytes == candidate.stored_bytes
        assert each.retention == proposed_retention(candidate.oracle)


def test_protocols_without_a_solution_are_last() -> None:
    planned = plan(PlanRequest(domain_size=1_000, users=300, error=0.001))
    able = [each.reason is None for each in planned.rounds]
    assert able == sorted(able, reverse=True)
    assert 0 < sum(able) < len(able)
    assert {each.reason for each in planned.rounds} == {None, "no epsilon up to 10 is enough"}


@pytest.mark.parametrize("error", [1e-9, 1e-160, 5e-324])
def test_refuses_error_that_needs_too_many_users(error: float) -> None:
    planned = plan(PlanRequest(domain_size=10, epsilon=1.0, error=error))
    assert {each.reason for each in planned.rounds} == {"more than 1e+12 users are needed"}
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


@pytest.mark.parametrize("protocol", ["grr", "oue", "sue", "ss"])
@pytest.mark.parametrize(("d", "r"), [(2, 1), (12, 11), (102, 10)])
def test_gain_is_that_of_mga(protocol: str, d: int, r: int) -> None:
    planned = one(protocol, domain_size=d, users=100, epsilon=1.0, targets=r, beta=0.2)
    oracle = frequency_oracle(protocol, 1.0, d)
    assert planned.gain == pytest.approx(MGA(range(r)).gain(oracle, np.zeros(d), 0.2))


@pytest.mark.parametrize("protocol", ["olh", "hr", "llh"])
@pytest.mark.parametrize("r", [1, 3, 10])
def test_gain_bounds_mga_that_searches_its_reports(protocol: str, r: int) -> None:
    planned = one(protocol, domain_size=40, users=100, epsilon=1.0, targets=r, beta=0.2)
    oracle = frequency_oracle(protocol, 1.0, 40)
    reports = MGA(range(r)).reports(oracle, 500, np.random.default_rng(r))
    hits = oracle.supports(reports, np.arange(r)).sum(axis=1)
    gain = 0.2 * (hits.mean() - r * oracle.q) / (oracle.p - oracle.q)
    assert 0 < gain <= planned.gain * (1 + 1e-9)


def test_beta_follows_from_the_tolerated_gain() -> None:
    for each in plan(PlanRequest(domain_size=102, users=10_000, epsilon=0.5, gain=0.01)).rounds:
        assert each.gain == pytest.approx(0.01)
        assert one(
            each.protocol, domain_size=102, users=10_000, epsilon=0.5, beta=each.beta
        ).gain == pytest.approx(0.01)
    anyone = plan(PlanRequest(domain_size=102, users=10_000, epsilon=0.5, gain=1_000.0)).rounds
    assert {each.beta for each in anyone} == {1.0}


def test_plan_is_json() -> None:
    planned = plan(PlanRequest(domain_size=9, users=100, error=0.2))
    document = json.loads(json.dumps(planned.to_dict(), allow_nan=False))
    assert document["solved"] == "epsilon"
    assert document["request"]["error"] == 0.2
    assert [each["protocol"] for each in document["protocols"]] == list(planned.protocols)


def test_plan_in_sentences() -> None:
    request = PlanRequest(domain_size=10, users=1, epsilon=1.0, targets=1)
    error, accuracy, *attack = plan(request, ["oue"]).sentences
    assert error == (
        "Take oue: with 1 user, 10 items and epsilon 1 the standard error of an estimate is 194 "
        "points, so it is within ± 381 at 95 %; all estimates together are within ± 607."
    )
    assert accuracy.startswith("With 1 person each share is ± 380 points (95 %)")
    assert attack == [
        "With oue 5 % malicious users raise the estimates of one target by up to 15.8 points.",
        "No lead is safe from 5 % malicious reports.",
        "Whoever sees one report guesses its user's item right in 18.1 % of cases; blind, in 10 %.",
    ]
    sums = plan(PlanRequest(domain_size=490, users=10**6, epsilon=1.0, sum_of=4)).sentences
    assert "the standard error of the sum of 4 estimates" in sums[0]
    assert any(each.startswith("Not with hr: hr lacks a law") for each in sums)
    histogram = plan(PlanRequest(domain_size=490, users=10**6, epsilon=1.0), ["llh"]).sentences
    assert histogram[3].startswith("A lead of 22.3 points is safe")
    assert histogram[-1].startswith("The tally of llh is the histogram of its reports")
    refused = plan(PlanRequest(domain_size=20, users=1, error=1e-6), ["oue"]).sentences
    assert refused[0].startswith("No protocol meets the plan. Allow a larger error")
    assert refused[1:] == ("Not with oue: no epsilon up to 10 is enough.",)


def test_form_in_sentences() -> None:
    form = plan_form([40, 12], 1.0, 9999, beta=0.1)
    *accuracies, gain = form.sentences
    assert accuracies == [str(each) for each in form.accuracies]
    assert gain == (
        "Attackers gain most in question 1. With ss 10 % malicious users raise the estimates of 10 "
        "targets together by up to 306 points if tickets assign the questions. If they choose "
        "their own, it is up to 557 points."
    )


THREE = {"domain_size": 10, "users": 100, "epsilon": 1.0}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "all but one of"),
        ({"domain_size": 10, "users": 100}, "epsilon and error are missing"),
        ({**THREE, "error": 0.1}, "all are given"),
        ({**THREE, "domain_size": 1}, "domain_size must be an integer from 2 to 100000"),
        ({**THREE, "domain_size": True}, "domain_size"),
        ({**THREE, "users": 0}, "users must be an integer from 1"),
        ({**THREE, "users": 10**13}, "users"),
        ({**THREE, "users": 1.5}, "users"),
        ({**THREE, "epsilon": 11.0}, "epsilon must be a number from 0.01 to 10"),
        ({**THREE, "epsilon": math.nan}, "epsilon"),
        (
            {"domain_size": 10, "users": 100, "error": 0.0},
            "error must be a number above 0 and at most 1",
        ),
        ({**THREE, "frequency": 1.5}, "frequency must be a number from 0 to 1"),
        ({**THREE, "sum_of": 10}, "sum_of must be an integer from 1 to 9"),
        ({**THREE, "targets": 10}, "targets must be an integer from 1 to 9"),
        ({**THREE, "beta": 1.1}, "beta must be a number from 0 to 1"),
        ({**THREE, "beta": 0.1, "gain": 0.1}, "not both"),
        ({**THREE, "gain": 0}, "gain must be a number above 0"),
    ],
)
def test_rejects_a_request_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PlanRequest(**fields)


def test_rejects_unknown_or_no_protocols() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        plan(PlanRequest(**THREE), [])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="protocol must be one of"):
        plan(PlanRequest(**THREE), ["rappor"])  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(7,), (40, 3), (12, 2, 100) * 5])
def test_choosing_a_question_gains_what_the_larger_share_would(sizes: tuple[int, ...]) -> None:
    k = len(sizes)
    form = plan_form(sizes, 1.0, 1000 * k, targets=3)
    for d, planned, chosen in zip(sizes, form.rounds, form.gains_chosen, strict=True):
        best = choose(d, 1.0, 1000).best.oracle.protocol
        attacked = {"domain_size": d, "users": 1000, "epsilon": 1.0, "targets": min(3, d - 1)}
        assert planned == one(best, **attacked, beta=0.05)
        share = 0.05 * k / (1 + 0.05 * (k - 1))
        assert one(best, **attacked, beta=share).gain == pytest.approx(chosen)

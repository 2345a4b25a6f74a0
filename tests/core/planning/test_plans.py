"""Plans: each of items, users, epsilon and error from the others, and their numbers."""

import json
import math
from dataclasses import asdict
from typing import Any

import pytest
from scipy import stats

from ldprecover import ParameterError, frequency_oracle
from ldprecover.estimation.estimates import partial_sum_variance
from ldprecover.evidence.unseen import unseen_gain
from ldprecover.planning import PlanRequest, accuracy, plan, plan_form
from ldprecover.planning.choosing import candidate, choose, proposed_retention
from ldprecover.protocols import PROTOCOLS

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


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda setting: ",".join(f"{k}={v}" for k, v in setting.items())
)
def test_plan_has_the_numbers_of_its_round(protocol: str, setting: dict[str, Any]) -> None:
    """Of 95 % intervals, the last of all d items together by Bonferroni's inequality."""
    planned = one(protocol, **setting, beta=0.2)
    d, n = planned.domain_size, planned.users
    oracle = frequency_oracle(protocol, planned.epsilon, d)
    r = max(1, min(10, d // 2))
    assert planned.standard_error == pytest.approx(math.sqrt(float(oracle.variance(1 / d, n))))
    assert planned.margin == pytest.approx(1.959963985 * planned.standard_error)
    largest = max(oracle.standard_errors(f, n) for f in (0, 1))
    assert planned.margin_of_all == pytest.approx(stats.norm.isf(0.025 / d) * largest)
    costs = candidate(oracle, n, r)
    assert (planned.targets, planned.beta) == (r, 0.2)
    assert planned.gain == pytest.approx(0.2 * costs.gain)
    assert (planned.report_size, planned.hash_tests) == (costs.report_size, costs.hash_tests)
    if "error" in setting:
        assert planned.standard_error <= setting["error"] * (1 + 1e-9)
        assert planned.standard_error == pytest.approx(setting["error"], rel=0.02)


@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS) - {"hr", "llh"}))
@pytest.mark.parametrize("frequency", [None, 0.7])
def test_planned_error_of_a_sum_is_exact(protocol: str, frequency: float | None) -> None:
    planned = one(protocol, domain_size=20, users=1_200, epsilon=1.0, sum_of=5, frequency=frequency)
    oracle = frequency_oracle(protocol, 1.0, 20)
    variance = partial_sum_variance(oracle, 5, frequency or 0.25, 1_200)
    assert planned.standard_error == pytest.approx(math.sqrt(variance))
    all_but_one = one(protocol, domain_size=2, users=1_200, epsilon=1.0, frequency=frequency)
    one_item = frequency_oracle(protocol, 1.0, 2).standard_errors(frequency or 0.5, 1_200)
    assert all_but_one.standard_error == pytest.approx(float(one_item))


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
    for each, costs in zip(planned.rounds, chosen.candidates, strict=True):
        assert each.standard_error == pytest.approx(costs.standard_error)
        assert each.stored_bytes == costs.stored_bytes
        assert each.retention == proposed_retention(costs.oracle)


def test_largest_solution_decides_the_order() -> None:
    """Of items the most, of users and epsilon the least; the order is that of its choice."""
    for fields, extreme in (
        ({"users": 10_000, "epsilon": 4.0, "error": 0.01}, max),
        ({"domain_size": 20, "epsilon": 4.0, "error": 0.001}, min),
        ({"domain_size": 20, "users": 10**6, "error": 0.003}, min),
    ):
        planned = plan(PlanRequest(**fields))  # type: ignore[arg-type]
        able: list[Any] = [each for each in planned.rounds if each.reason is None]
        chosen = extreme(able, key=lambda each: getattr(each, planned.request.solved))
        names = [each.protocol for each in able]
        choice = choose(chosen.domain_size, chosen.epsilon, chosen.users, sorted(names))
        assert names == [each.oracle.protocol for each in choice.candidates]


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
    expected = accuracy(9, planned.best.epsilon, 100, [planned.best.protocol])  # type: ignore
    assert document["accuracy"] == asdict(expected) | {"sentence": str(expected)}
    assert document["sentences"] == list(planned.sentences)


def test_plan_in_sentences() -> None:
    request = PlanRequest(domain_size=10, users=1, epsilon=1.0, targets=1)
    error, accuracy, change, *attack = plan(request, ["oue"]).sentences
    assert error == (
        "Take oue: with 1 user, 10 items and epsilon 1 the standard error of an estimate is 194 "
        "points, so it is within ± 381 at 95 %; all estimates together are within ± 607."
    )
    assert accuracy.startswith("With 1 person each share is ± 380 points (95 %)")
    assert change == (
        "Between two such rounds no change of an item is seen. "
        "The same people can answer 4 times at epsilon 1: 4 in all."
    )
    assert attack == [
        "With oue 5 % malicious users raise the estimates of one target by up to 15.8 points.",
        (
            "An attack by 5 % that the tests of a verdict cannot see moves one item by up to 16 "
            "points."
        ),
        "No lead is safe from 5 % malicious reports.",
        "Whoever sees one report guesses its user's item right in 18.1 % of cases; blind, in 10 %.",
    ]
    sums = plan(PlanRequest(domain_size=490, users=10**6, epsilon=1.0, sum_of=4)).sentences
    assert "the standard error of the sum of 4 estimates" in sums[0]
    assert any(each.startswith("Not with hr: hr lacks a law") for each in sums)
    histogram = plan(PlanRequest(domain_size=490, users=10**6, epsilon=1.0), ["llh"]).sentences
    assert histogram[5].startswith("A lead of 22.3 points is safe")
    assert histogram[-1].startswith("The tally of llh is the histogram of its reports")
    every = plan(PlanRequest(domain_size=490, users=10**6, epsilon=1.0)).sentences
    assert every[-1] == (
        "Where reports are stored anyway, take olh: its attacked items can be named."
    )
    refused = plan(PlanRequest(domain_size=20, users=1, error=1e-6), ["oue"]).sentences
    assert refused[0].startswith("No protocol meets the plan. Allow a larger error")
    assert refused[1:] == ("Not with oue: no epsilon up to 10 is enough.",)


def test_form_in_sentences() -> None:
    form = plan_form([40, 12], 1.0, 9999, beta=0.1)
    for sizes in ([], [2] * 51):
        with pytest.raises(ParameterError, match="the number of questions must be an integer from"):
            plan_form(sizes, 1.0, 9999)
    *accuracies, gain = form.sentences
    assert accuracies == [str(each) for each in form.accuracies]
    assert gain == (
        "Attackers gain most in question 1. With ss 10 % malicious users raise the estimates of 10 "
        "targets together by up to 306 points if tickets assign the questions. If they choose "
        "their own, it is up to 557 points. If one in 5 honest tickets is used, 10 % of all "
        "tickets are 35.7 % of the answers."
    )


def test_errors_of_a_question_are_about_all_people() -> None:
    """Who answers is a sample of them."""
    users, k = 100_000, 5
    form = plan_form([2] * k, 1.0, users)
    round = form.rounds[0]
    oracle = frequency_oracle(round.protocol, 1.0, 2)
    variance = float(oracle.variance(0.5, users // k)) + (k - 1) * 0.25 / users
    assert round.standard_error == pytest.approx(math.sqrt(variance))
    assert round.margin == form.accuracies[0].margin == pytest.approx(1.959963985 * variance**0.5)
    assert round.margin_of_all == pytest.approx(stats.norm.isf(0.0125) * variance**0.5)


def test_plan_has_the_unseen_gain_of_at_most_twenty_targets() -> None:
    for targets, items in ((10, 10), (40, 20)):
        planned = one("oue", domain_size=102, users=60_000, epsilon=1.0, targets=targets, beta=0.03)
        expected = unseen_gain(frequency_oracle("oue", 1.0, 102), 60_000, items, 0.03)
        assert planned.unseen == expected


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
@pytest.mark.parametrize("sizes", [(7,), (40, 3), (12, 2, 100)])
def test_choosing_a_question_gains_what_the_larger_share_would(sizes: tuple[int, ...]) -> None:
    k = len(sizes)
    form = plan_form(sizes, 1.0, 1000 * k, targets=3)
    for d, planned, chosen in zip(sizes, form.rounds, form.gains_chosen, strict=True):
        best = choose(d, 1.0, 1000).best_if_stored.oracle.protocol
        attacked = {"domain_size": d, "users": 1000, "epsilon": 1.0, "targets": min(3, d - 1)}
        assert (planned.protocol, planned.gain) == (best, one(best, **attacked).gain)
        share = 0.05 * k / (1 + 0.05 * (k - 1))
        assert one(best, **attacked, beta=share).gain == pytest.approx(chosen)

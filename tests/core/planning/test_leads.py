"""Leads that are safe from malicious reports: the planner against certificates of counts."""

import math
from typing import Any

import numpy as np
import pytest

from ldprecover import ParameterError, frequency_oracle
from ldprecover.certificate import Ahead, Certificate
from ldprecover.certificate.evidence import RoundEvidence
from ldprecover.planning import PlanRequest, plan
from ldprecover.planning.leads import Leads
from ldprecover.protocols import PROTOCOLS


def tolerance_of_counts(
    protocol: str, epsilon: float, n: int, frequencies: np.ndarray
) -> float | None:
    """Return the tolerance of "the first item is ahead of the second" at expected counts."""
    oracle = frequency_oracle(protocol, epsilon, frequencies.size)
    counts = n * (oracle.q + (oracle.p - oracle.q) * frequencies)
    return Certificate(RoundEvidence(oracle, counts, n, 1 - 0.95), 0.0, 0.95).tolerance(Ahead(0, 1))


def only_round(request: PlanRequest, protocol: str) -> Any:
    (planned,) = plan(request, [protocol]).rounds
    return planned


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("d", "epsilon", "n", "lead", "frequency"),
    [
        (2, 1.0, 20_000, 0.2, None),
        (3, 0.5, 10**6, 0.3, None),
        (20, 4.0, 10**5, 0.05, None),
        (102, 1.0, 10**7, 0.1, 0.3),
        (102, 2.0, 10**5, 0.9, 0.1),
        (20, 1.0, 500, 0.01, None),
    ],
)
def test_share_a_lead_is_safe_from_is_the_certificates(
    protocol: str, d: int, epsilon: float, n: int, lead: float, frequency: float | None
) -> None:
    first = 1 / d + lead if frequency is None else max(lead, frequency)
    first = (1 + lead) / 2 if d == 2 else min(first, (1 + lead) / 2)
    frequencies = np.full(d, (1 - 2 * first + lead) / max(d - 2, 1))
    frequencies[:2] = first, first - lead
    expected = tolerance_of_counts(protocol, epsilon, n, frequencies)
    leads: Any = Leads(frequency_oracle(protocol, epsilon, d), n, frequency)
    share = leads.tolerance(lead)
    if expected is None:
        assert share is None
        return
    assert share == pytest.approx(expected, abs=2e-9)
    assert leads.least_safe(expected) == pytest.approx(lead, abs=1e-6)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_noise_a_lead_bears_a_share_of_p_minus_q(protocol: str) -> None:
    oracle = frequency_oracle(protocol, 1.0, 4)
    share: Any = Leads(oracle, 10**12).tolerance(0.3)
    # Frequencies that sum to one prove a little more, and the noise a little less.
    assert 0.3 * (oracle.p - oracle.q) - 1e-4 <= share <= 0.5 * (oracle.p - oracle.q)
    grid = np.array([Leads(oracle, n).tolerance(0.3) or 0.0 for n in (100, 10**4, 10**6, 10**12)])
    assert (np.diff(grid) > 0).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_least_epsilon_protects_the_lead_and_less_does_not(protocol: str) -> None:
    request = PlanRequest(domain_size=20, users=100_000, lead=0.05, beta=0.01)
    assert request.solved == "epsilon"
    planned = only_round(request, protocol)
    assert planned.standard_error is not None
    assert planned.safe_lead == pytest.approx(0.05, abs=1e-9)
    below = frequency_oracle(protocol, planned.epsilon * 0.999, 20)
    assert not Leads(below, 100_000).is_safe(0.05, 0.01)
    assert Leads(frequency_oracle(protocol, planned.epsilon, 20), 100_000).is_safe(0.05, 0.01)


def test_lead_and_error_are_both_met() -> None:
    fields = {"domain_size": 20, "users": 100_000, "beta": 0.01}
    lead, error, both = (
        only_round(PlanRequest(**fields, **more), "oue").epsilon  # type: ignore[arg-type]
        for more in ({"lead": 0.05}, {"error": 0.001}, {"lead": 0.05, "error": 0.001})
    )
    assert both == max(lead, error)


def test_users_and_items_follow_from_a_lead() -> None:
    few = only_round(PlanRequest(domain_size=20, epsilon=2.0, lead=0.05, beta=0.01), "oue")
    oracle = frequency_oracle("oue", 2.0, 20)
    assert Leads(oracle, few.users).is_safe(0.05, 0.01)
    assert not Leads(oracle, few.users - 1).is_safe(0.05, 0.01)
    largest = only_round(PlanRequest(users=10**6, epsilon=2.0, lead=0.05, beta=0.01), "grr")
    assert Leads(frequency_oracle("grr", 2.0, largest.domain_size), 10**6).is_safe(0.05, 0.01)
    more = frequency_oracle("grr", 2.0, largest.domain_size + 1)
    assert not Leads(more, 10**6).is_safe(0.05, 0.01)


def test_reason_states_the_largest_share_and_the_least_lead() -> None:
    request = PlanRequest(domain_size=102, users=100_000, epsilon=1.0, lead=0.05, beta=0.002)
    planned = plan(request)
    assert planned.best is None
    reasons = {each.protocol: each.reason or "" for each in planned.rounds}
    leads = Leads(frequency_oracle("oue", 1.0, 102), 100_000)
    assert reasons["oue"] == (
        "a lead of 5 points is not safe from 0.2 % malicious reports, at epsilon 1 with 102 items "
        f"and 100,000 users: at most {100 * (leads.tolerance(0.05) or 0):.3g} % may be malicious; "
        f"a lead of {100 * (leads.least_safe(0.002) or 0):.3g} points is safe from them"
    )
    assert "the noise of honest reports can hide it" in reasons["grr"]
    no_epsilon = plan(PlanRequest(domain_size=102, users=100_000, lead=0.05, beta=0.5))
    assert {"at epsilon 10" in (each.reason or "") for each in no_epsilon.rounds} == {True}
    everyone = plan(PlanRequest(domain_size=9, users=100, epsilon=1.0, lead=1.0, beta=1.0), ["oue"])
    assert "no lead is safe" in (everyone.rounds[0].reason or "")


def test_every_plan_states_the_safe_lead() -> None:
    request = PlanRequest(domain_size=102, users=100_000, epsilon=1.0, beta=0.01)
    for each in plan(request).rounds:
        oracle = frequency_oracle(each.protocol, 1.0, 102)
        assert each.safe_lead is not None
        assert each.safe_lead > 0.01 / (oracle.p - oracle.q) * (1 - 1e-9) or each.protocol == "grr"
        assert Leads(oracle, 100_000).is_safe(each.safe_lead, 0.01)
        assert not Leads(oracle, 100_000).is_safe(each.safe_lead - 1e-6, 0.01)


def test_the_worst_attack_on_a_tie_stays_below_the_safe_lead() -> None:
    """Otherwise a lead that attackers made would count as safe; noise is the rest of it."""
    oracle, n, share = frequency_oracle("oue", 2.0, 20), 10**6, 0.01
    lead: Any = Leads(oracle, n).least_safe(share)
    honest = np.full(20, (1 - 0.1) / 18)
    honest[:2] = 0.05, 0.05  # a tie: nobody is ahead
    counts = (1 - share) * n * (oracle.q + (oracle.p - oracle.q) * honest)
    counts[0] += share * n  # the worst attack for the claim that the first is ahead
    estimates = oracle.estimate(counts, n)
    assert 0.5 * lead < estimates[0] - estimates[1] < lead


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lead": 0.0}, "lead must be a number above 0 and at most 1"),
        ({"lead": 1.5}, "lead must be a number above 0"),
        ({"lead": math.nan}, "lead must be"),
        ({"lead": 0.1, "gain": 0.1}, "lead and gain may not both be given"),
    ],
)
def test_rejects_an_invalid_lead(fields: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PlanRequest(domain_size=10, users=100, epsilon=1.0, **fields)  # type: ignore[arg-type]


def test_a_lead_does_not_replace_two_others() -> None:
    with pytest.raises(ParameterError, match="users and epsilon are missing"):
        PlanRequest(domain_size=10, lead=0.1)


def test_frequency_of_a_sum_is_not_that_of_the_first_item() -> None:
    oracle = frequency_oracle("oue", 1.0, 10)
    of_sum, of_item = (
        PlanRequest(domain_size=10, users=1_000, epsilon=1.0, frequency=0.5, sum_of=size)
        for size in (3, 1)
    )
    assert of_sum.leads_of(oracle, 1_000).frequency is None
    assert of_item.leads_of(oracle, 1_000).frequency == 0.5

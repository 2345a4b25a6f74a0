"""Plans for a change between two rounds: it is seen with the planned numbers, and not with less."""

import pytest

from ldprecover import ParameterError, frequency_oracle
from ldprecover.changes import least_change
from ldprecover.planning import PlanRequest, plan


@pytest.mark.parametrize("protocol", ["grr", "oue", "llh"])
def test_least_users_see_the_change_and_one_less_does_not(protocol: str) -> None:
    best = plan(PlanRequest(domain_size=6, epsilon=1.0, change=0.03), [protocol]).best
    assert best is not None
    assert best.users is not None
    oracle = frequency_oracle(protocol, 1.0, 6)
    assert least_change(oracle, best.users) <= 0.03 < least_change(oracle, best.users - 1)
    assert best.least_change == pytest.approx(0.03, abs=1e-6)


def test_least_epsilon_sees_the_change() -> None:
    best = plan(PlanRequest(domain_size=6, users=100_000, change=0.03), ["oue"]).best
    assert best is not None
    assert best.epsilon == pytest.approx(1.04, abs=0.01)
    assert best.least_change == pytest.approx(0.03, abs=1e-6)


def test_error_and_change_are_both_met() -> None:
    error, change, both = (
        plan(PlanRequest(domain_size=6, epsilon=1.0, error=error, change=change), ["oue"]).rounds[0]
        for error, change in ((0.01, None), (None, 0.03), (0.01, 0.03))
    )
    assert both.users == max(error.users or 0, change.users or 0)


def test_reason_states_the_change_that_is_seen() -> None:
    few = plan(PlanRequest(domain_size=102, users=1000, epsilon=1.0, change=0.03), ["oue", "grr"])
    reasons = {each.protocol: each.reason or "" for each in few.rounds}
    assert reasons["oue"].startswith(
        "a change of 3 points is not seen, at epsilon 1 with 102 items"
    )
    assert reasons["oue"].endswith("one of 38.8 points is")
    assert reasons["grr"].endswith("no change is")
    with pytest.raises(ParameterError, match="change must be"):
        PlanRequest(domain_size=6, epsilon=1.0, change=3)

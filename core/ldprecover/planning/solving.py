"""Solves a plan request for one protocol."""

import math
from bisect import bisect_left

from ldprecover.errors import ParameterError
from ldprecover.estimation.bisection import bisect
from ldprecover.planning.request import PlanRequest
from ldprecover.protocols import (
    MAX_DOMAIN_SIZE,
    MAX_EPSILON,
    MAX_USERS,
    MIN_EPSILON,
    FrequencyOracle,
    frequency_oracle,
)
from ldprecover.sentences import number, percent, points

_STEPS = 64  # grid of epsilons, spaced by equal factors
_HALVINGS = 40  # bisections between two steps: epsilon to 12 digits


def solve(request: PlanRequest, protocol: str) -> tuple[FrequencyOracle, int]:
    """Return the frequency oracle and the users that meet the request.

    Raises ParameterError, with the reason, if none do.
    """
    d, users, epsilon = request.domain_size, request.users, request.epsilon
    if d is None:
        assert users is not None
        assert epsilon is not None
        return _most_items(request, protocol, users, epsilon), users
    if epsilon is None:
        assert users is not None
        return _least_epsilon(request, protocol, d, users), users
    oracle = frequency_oracle(protocol, epsilon, d)
    if users is None:
        return oracle, _least_users(request, oracle)
    _check_goals(request, oracle, users)
    return oracle, users


def _least_users(request: PlanRequest, oracle: FrequencyOracle) -> int:
    least = 1
    if request.error is not None:
        ratio = request.error_of(oracle, 1) / request.error
        if ratio > math.sqrt(MAX_USERS):  # the square of the ratio may overflow
            raise ParameterError(f"more than {MAX_USERS:g} users are needed")
        least = max(1, math.ceil(ratio**2))
    if request.lead is None and request.change is None:
        return least
    _check_goals(request, oracle, MAX_USERS)
    users = range(MAX_USERS)
    return bisect_left(users, True, lo=least, key=lambda n: request.meets(oracle, n))


def _least_epsilon(request: PlanRequest, protocol: str, d: int, users: int) -> FrequencyOracle:
    def enough(epsilon: float) -> bool:
        return request.meets(frequency_oracle(protocol, epsilon, d), users)

    # The error may jump where the protocol's own integer parameter changes, so bisection needs a
    # step on which it is monotone.
    ratio = (MAX_EPSILON / MIN_EPSILON) ** (1 / _STEPS)
    steps = [min(MAX_EPSILON, MIN_EPSILON * ratio**i) for i in range(_STEPS)] + [MAX_EPSILON]
    first = next((i for i, epsilon in enumerate(steps) if enough(epsilon)), None)
    if first is None:
        _check_goals(request, frequency_oracle(protocol, MAX_EPSILON, d), users)
        raise ParameterError(f"no epsilon up to {MAX_EPSILON:g} is enough")
    if first == 0:
        return frequency_oracle(protocol, MIN_EPSILON, d)
    least = bisect(enough, steps[first], steps[first - 1], _HALVINGS)
    return frequency_oracle(protocol, least, d)


def _most_items(request: PlanRequest, protocol: str, users: int, epsilon: float) -> FrequencyOracle:
    def enough(d: int) -> bool:
        return request.meets(frequency_oracle(protocol, epsilon, d), users)

    low = max(request.sum_of, request.targets or 1) + 1
    if enough(MAX_DOMAIN_SIZE):
        return frequency_oracle(protocol, epsilon, MAX_DOMAIN_SIZE)
    if not enough(low):
        _check_goals(request, frequency_oracle(protocol, epsilon, low), users)
        raise ParameterError(f"even {low} items are too many")
    high = MAX_DOMAIN_SIZE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return frequency_oracle(protocol, epsilon, low)


def _check_goals(request: PlanRequest, oracle: FrequencyOracle, users: int) -> None:
    """Raise ParameterError, with what is possible, unless change and lead are seen and safe."""
    setting = (
        f"at epsilon {number(oracle.epsilon)} with {oracle.domain_size:,} items and {users:,} users"
    )
    if request.change is not None:
        least_seen = request.least_change_of(oracle, users)
        if least_seen > request.change:
            larger = "no change is" if least_seen > 1 else f"one of {points(least_seen)} points is"
            raise ParameterError(
                f"a change of {points(request.change)} points is not seen, {setting}: {larger}"
            )
    if request.lead is None:
        return
    leads = request.leads_of(oracle, users)
    if leads.is_safe(request.lead, request.share):
        return
    share, lead = leads.tolerance(request.lead), leads.least_safe(request.share)
    bearable = (
        "the noise of honest reports can hide it"
        if share is None
        else f"at most {percent(share)} may be malicious"
    )
    least = (
        "no lead is safe from them"
        if lead is None
        else f"a lead of {points(lead)} points is safe from them"
    )
    raise ParameterError(
        f"a lead of {points(request.lead)} points is not safe from {percent(request.share)} "
        f"malicious reports, {setting}: {bearable}; {least}"
    )

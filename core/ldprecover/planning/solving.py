"""Solves a plan request for one protocol."""

import math

from ldprecover.errors import ParameterError
from ldprecover.planning.request import PlanRequest
from ldprecover.protocols import (
    MAX_DOMAIN_SIZE,
    MAX_EPSILON,
    MAX_USERS,
    MIN_EPSILON,
    FrequencyOracle,
    frequency_oracle,
)

_STEPS = 64  # grid of epsilons, spaced by equal factors
_HALVINGS = 40  # bisections between two steps: epsilon to 12 digits


def solve(request: PlanRequest, protocol: str) -> tuple[FrequencyOracle, int]:
    """Return the frequency oracle and the users that meet the request.

    Raises ParameterError, with the reason, if none do.
    """
    d, users, epsilon, error = request.domain_size, request.users, request.epsilon, request.error
    if error is None:
        assert d is not None
        assert users is not None
        assert epsilon is not None
        return frequency_oracle(protocol, epsilon, d), users
    if users is None:
        assert d is not None
        assert epsilon is not None
        oracle = frequency_oracle(protocol, epsilon, d)
        ratio = request.error_of(oracle, 1) / error
        if ratio > math.sqrt(MAX_USERS):  # the square of the ratio may overflow
            raise ParameterError(f"more than {MAX_USERS:g} users are needed")
        return oracle, max(1, math.ceil(ratio**2))
    if epsilon is None:
        assert d is not None
        return _least_epsilon(request, protocol, d, users, error), users
    return _most_items(request, protocol, users, epsilon, error), users


def _least_epsilon(
    request: PlanRequest, protocol: str, d: int, users: int, error: float
) -> FrequencyOracle:
    def enough(epsilon: float) -> bool:
        return request.error_of(frequency_oracle(protocol, epsilon, d), users) <= error

    # The error may jump where the protocol's own integer parameter changes, so bisection needs a
    # step on which it is monotone.
    ratio = (MAX_EPSILON / MIN_EPSILON) ** (1 / _STEPS)
    steps = [min(MAX_EPSILON, MIN_EPSILON * ratio**i) for i in range(_STEPS)] + [MAX_EPSILON]
    first = next((i for i, epsilon in enumerate(steps) if enough(epsilon)), None)
    if first is None:
        raise ParameterError(f"no epsilon up to {MAX_EPSILON:g} is enough")
    if first == 0:
        return frequency_oracle(protocol, MIN_EPSILON, d)
    low, high = steps[first - 1], steps[first]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return frequency_oracle(protocol, high, d)


def _most_items(
    request: PlanRequest, protocol: str, users: int, epsilon: float, error: float
) -> FrequencyOracle:
    def enough(d: int) -> bool:
        return request.error_of(frequency_oracle(protocol, epsilon, d), users) <= error

    low = max(2, request.sum_of + 1, 2 if request.targets is None else request.targets + 1)
    if enough(MAX_DOMAIN_SIZE):
        return frequency_oracle(protocol, epsilon, MAX_DOMAIN_SIZE)
    if not enough(low):
        raise ParameterError(f"even {low} items are too many")
    high = MAX_DOMAIN_SIZE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return frequency_oracle(protocol, epsilon, low)

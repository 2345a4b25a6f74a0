"""From a wish to the protocol and the users with which it comes true."""

import math

from ldprecover.errors import ParameterError
from ldprecover.planning.wish import MAX_USERS, Wish
from ldprecover.protocols import (
    MAX_DOMAIN_SIZE,
    MAX_EPSILON,
    MIN_EPSILON,
    FrequencyOracle,
    frequency_oracle,
)

_STEPS = 64  # of epsilon, by equal factors, among which the first that is enough is looked for
_HALVINGS = 40  # of such a step


def setting_of(wish: Wish, protocol: str) -> tuple[FrequencyOracle, int]:
    """Return the protocol and the users with which the wish comes true. Raises ParameterError, with
    the reason.
    """
    d, users, epsilon, error = wish.domain_size, wish.users, wish.epsilon, wish.error
    if error is None:
        assert d is not None
        assert users is not None
        assert epsilon is not None
        return frequency_oracle(protocol, epsilon, d), users
    if users is None:
        assert d is not None
        assert epsilon is not None
        oracle = frequency_oracle(protocol, epsilon, d)
        ratio = wish.error_of(oracle, 1) / error
        if ratio > math.sqrt(MAX_USERS):  # before it is squared, which may be beyond any float
            raise ParameterError(f"more than {MAX_USERS:g} users are needed")
        return oracle, max(1, math.ceil(ratio**2))
    if epsilon is None:
        assert d is not None
        return _least_epsilon(wish, protocol, d, users, error), users
    return _most_items(wish, protocol, users, epsilon, error), users


def _least_epsilon(wish: Wish, protocol: str, d: int, users: int, error: float) -> FrequencyOracle:
    def enough(epsilon: float) -> bool:
        return wish.error_of(frequency_oracle(protocol, epsilon, d), users) <= error

    # Where a protocol's own parameter goes up by one the error may jump, so a first step is looked
    # for.
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
    wish: Wish, protocol: str, users: int, epsilon: float, error: float
) -> FrequencyOracle:
    def enough(d: int) -> bool:
        return wish.error_of(frequency_oracle(protocol, epsilon, d), users) <= error

    low = max(2, wish.sum_of + 1, 2 if wish.targets is None else wish.targets + 1)
    if enough(MAX_DOMAIN_SIZE):
        return frequency_oracle(protocol, epsilon, MAX_DOMAIN_SIZE)
    if not enough(low):
        raise ParameterError(f"even {low} items are too many")
    high = MAX_DOMAIN_SIZE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return frequency_oracle(protocol, epsilon, low)

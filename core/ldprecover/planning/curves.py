"""Errors over epsilon and over users, to be drawn."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ldprecover.errors import ParameterError
from ldprecover.planning.wish import MAX_USERS, Wish
from ldprecover.protocols import frequency_oracle

_POINTS = 41
_FACTOR = 10  # how far users go either way


@dataclass(frozen=True)
class Curves:
    """Standard errors of what was asked for, of each protocol by name, over epsilon and over users.

    None where a protocol has none.
    """

    epsilon: tuple[float, ...]
    users: tuple[int, ...]
    over_epsilon: dict[str, tuple[float | None, ...]]
    over_users: dict[str, tuple[float | None, ...]]


def errors_around(
    wish: Wish, d: int, users: int, epsilon: float, protocols: Iterable[str]
) -> Curves:
    """Return the errors of protocols over d items: of these users for each epsilon, at this epsilon
    for each number.
    """

    def error(name: str, epsilon: float, n: int) -> float | None:
        return _or_none(lambda: wish.error_of(frequency_oracle(name, epsilon, d), n))

    factors = [_FACTOR ** (2 * i / (_POINTS - 1) - 1) for i in range(_POINTS)]  # from 1/10 to 10
    numbers = tuple(sorted({min(MAX_USERS, max(1, round(users * each))) for each in factors}))
    names = list(protocols)
    return Curves(
        tuple(factors),
        numbers,
        {name: tuple(error(name, each, users) for each in factors) for name in names},
        {name: tuple(error(name, epsilon, each) for each in numbers) for name in names},
    )


def _or_none(ask: Callable[[], float]) -> float | None:
    try:
        return ask()
    except ParameterError:
        return None

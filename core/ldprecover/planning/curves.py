"""Errors over epsilon and over users, to be drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldprecover.errors import ParameterError
from ldprecover.planning.plans import PlannedRound
from ldprecover.planning.wish import MAX_USERS, Wish
from ldprecover.protocols import frequency_oracle

__all__ = ["Curves", "curves"]

_POINTS = 41


@dataclass(frozen=True)
class Curves:
    """Standard errors of what was asked for, of each protocol by name, over epsilon and over users.

    None where a protocol has none.
    """

    epsilon: tuple[float, ...]
    users: tuple[int, ...]
    over_epsilon: dict[str, tuple[float | None, ...]]
    over_users: dict[str, tuple[float | None, ...]]


def curves(wish: Wish, around: PlannedRound, protocols: Sequence[str]) -> Curves:
    """Return the errors of protocols around a planned round that can be had: its domain, its users, its epsilon."""
    d, n, epsilon = around.domain_size, around.users, around.epsilon
    if d is None or n is None or epsilon is None:
        raise ParameterError("curves are drawn around a round that can be had")
    spread = [0.1 * 100 ** (i / (_POINTS - 1)) for i in range(_POINTS)]  # from 0.1 to 10
    users = tuple(min(MAX_USERS, max(1, round(n * 10 * each / 10))) for each in spread)

    def error(name: str, epsilon: float, n: int) -> float | None:
        return _or_none(lambda: wish.error_of(frequency_oracle(name, epsilon, d), n))

    return Curves(
        tuple(spread),
        users,
        {name: tuple(error(name, each, n) for each in spread) for name in protocols},
        {name: tuple(error(name, epsilon, each) for each in users) for name in protocols},
    )


def _or_none(ask: Callable[[], float]) -> float | None:
    try:
        return ask()
    except ParameterError:
        return None

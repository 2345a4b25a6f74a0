"""The standard error over epsilon and over the number of users, for charts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ldprecover.errors import ParameterError
from ldprecover.planning.request import PlanRequest
from ldprecover.protocols import MAX_USERS, frequency_oracle

_POINTS = 41  # points of a curve
_FACTOR = 10  # a curve runs from a tenth of the number of users to ten times it


@dataclass(frozen=True)
class Curves:
    """Standard errors of the planned sum by protocol, over epsilon and over the number of users.

    None stands for a protocol that cannot have the setting.
    """

    epsilon: tuple[float, ...]
    users: tuple[int, ...]
    over_epsilon: dict[str, tuple[float | None, ...]]
    over_users: dict[str, tuple[float | None, ...]]


def errors_around(
    request: PlanRequest, d: int, users: int, epsilon: float, protocols: Iterable[str]
) -> Curves:
    """Return each protocol's errors at the given number of users and at the given epsilon."""

    def error(name: str, epsilon: float, n: int) -> float | None:
        try:
            return request.error_of(frequency_oracle(name, epsilon, d), n)
        except ParameterError:
            return None

    factors = [_FACTOR ** (2 * i / (_POINTS - 1) - 1) for i in range(_POINTS)]  # from 1/10 to 10
    numbers = tuple(sorted({min(MAX_USERS, max(1, round(users * each))) for each in factors}))
    names = list(protocols)
    return Curves(
        tuple(factors),
        numbers,
        {name: tuple(error(name, each, users) for each in factors) for name in names},
        {name: tuple(error(name, epsilon, each) for each in numbers) for name in names},
    )

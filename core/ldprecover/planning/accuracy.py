"""How exact the shares of a future round are, in one sentence for everybody who asks for it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.planning.choosing import choose
from ldprecover.protocols import MAX_EPSILON, FrequencyOracle

_POINT = 0.01
_NORMAL = NormalDist().inv_cdf(0.975)
_CLIENT_EPSILON = 2.0  # ldprecover_client.reporter.MAX_EPSILON


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """The accuracy of one item's share, of 1/d, in a round with its best protocol.

    `margin` is half the width of the interval of 95 %, as a frequency, and `largest_margin` that
    of the share between 0 and 1 whose interval is widest. `users_for_point` and `items_for_point`
    are how many users, or at most how many items, make `margin` one percentage point.
    `epsilon_for_share` and `items_for_share` make it the average share of the items, 1/d. Each is
    None if it is already, or if no number does. `str` gives the sentence.
    """

    domain_size: int
    users: int
    margin: float
    largest_margin: float
    users_for_point: int | None
    items_for_point: int | None
    epsilon_for_share: float | None
    items_for_share: int | None

    @property
    def drowns(self) -> bool:
        """Whether the margin exceeds the average share, 1/d, both with two digits."""
        return _rounded(self.margin) > _rounded(1 / self.domain_size)

    def __str__(self) -> str:
        people, needs = (
            ("1 person", "needs") if self.users == 1 else (f"{self.users:,} people", "need")
        )
        margin, largest = _points(self.margin), _points(self.largest_margin)
        large = "" if margin == largest else f", a large one up to ± {largest}"
        text = (
            f"With {people} each share is ± {margin} points (95 %){large}; "
            "smaller shares drown in the noise."
        )
        if self.drowns:
            text += f" The average share, {_points(1 / self.domain_size)} points, does." + _ways(
                f"To see it, {people} {needs} ",
                self.epsilon_for_share and _budget(self.epsilon_for_share),
                self.items_for_share and f"at most {self.items_for_share:,} items",
            )
        return text + _ways(
            "For ± 1 point: ",
            self.users_for_point and f"{_rounded_up(self.users_for_point):,} people",
            self.items_for_point and f"at most {self.items_for_point:,} items",
        )


def accuracy(
    domain_size: int,
    epsilon: float,
    users: int,
    protocols: Iterable[str] | None = None,
    questions: int = 1,
) -> Accuracy:
    """Return the accuracy of a round; of the best of all protocols unless given.

    `users` are all people of the form if the round is one of its `questions`: a sample of
    `users // questions` answers. Raises ParameterError.

        str(accuracy(290, 1.0, 5000))  # 'With 5,000 people each share is ± 5.4 points (95 %); …'
    """
    names = None if protocols is None else list(protocols)
    n = users // questions

    def most(oracle: FrequencyOracle, f: Any) -> float:
        sampling = (questions - 1) * f * (1 - f) / users
        return _NORMAL * math.sqrt(np.max(oracle.variance(f, n) + sampling))

    oracle = choose(domain_size, epsilon, n, names).best.oracle
    margin, largest = (most(oracle, f) for f in (1 / domain_size, np.linspace(0, 1, 1001)))

    def noise(items: int, budget: float, allowed: list[str] | None) -> float:
        try:
            return most(choose(items, budget, n, allowed).best.oracle, 1 / items)
        except ParameterError:  # of a protocol that has no such round
            return math.inf

    def most_items(is_too_noisy: Callable[[int], bool]) -> int | None:
        fewer = bisect_left(range(2, domain_size), True, key=is_too_noisy)
        return fewer + 1 if fewer else None

    if noise(domain_size, epsilon, None) == margin:
        names = None  # it has the best protocol, and another round may have another
    enough_users = enough_items = enough_epsilon = items_to_see = None
    if margin > _POINT:
        enough_users = questions * math.ceil(users / questions * (margin / _POINT) ** 2)
        enough_items = most_items(lambda d: noise(d, epsilon, names) > _POINT)
    if _rounded(margin) > _rounded(1 / domain_size):
        steps = (tenth / 10 for tenth in range(int(10 * epsilon) + 1, int(10 * MAX_EPSILON) + 1))
        average = 1 / domain_size
        enough_epsilon = next((e for e in steps if noise(domain_size, e, names) <= average), None)
        items_to_see = most_items(lambda d: noise(d, epsilon, names) * d > 1)
    return Accuracy(
        domain_size=domain_size,
        users=users,
        margin=margin,
        largest_margin=max(margin, largest),
        users_for_point=enough_users,
        items_for_point=enough_items,
        epsilon_for_share=enough_epsilon,
        items_for_share=items_to_see,
    )


def _ways(start: str, *ways: object) -> str:
    enough = ", or ".join(str(way) for way in ways if way)
    return f" {start}{enough}." if enough else ""


def _budget(epsilon: float) -> str:
    limit = f" (clients send at most {_CLIENT_EPSILON:g} unless told)"
    return f"ε {epsilon:g}{limit if epsilon > _CLIENT_EPSILON else ''}"


def _rounded(share: float) -> float:
    """Return a share in points, with two digits."""
    return float(f"{100 * share:.2g}")


def _points(share: float) -> str:
    return f"{_rounded(share):,g}"


def _rounded_up(number: int) -> int:
    """Return a number with three digits, rounded up."""
    unit = 10 ** max(0, len(str(number)) - 3)
    return -(-number // unit) * unit

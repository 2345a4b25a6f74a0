"""How exact the shares of a future round are, in one sentence for everybody who asks for it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from ldprecover.planning.plans import plan
from ldprecover.planning.request import PlanRequest

_POINT = 0.01
_NORMAL = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of one item's share, of 1/d, in a round with its best protocol.

    `margin` is half the width of the interval of 95 %, as a frequency. `users_for_point` and
    `items_for_point` are how many users, or at most how many items, make it one percentage point;
    None if it is already, or if no number does. `str` gives the sentence.
    """

    domain_size: int
    users: int
    margin: float
    users_for_point: int | None
    items_for_point: int | None

    @property
    def drowns(self) -> bool:
        """Whether the margin exceeds the average share, 1/d."""
        return self.margin * self.domain_size > 1

    def __str__(self) -> str:
        text = (
            f"With {self.users:,} people each share is ± {100 * self.margin:.2g} points (95 %); "
            "smaller shares drown in the noise."
        )
        ways = []
        if self.users_for_point is not None:
            ways.append(f"{_rounded_up(self.users_for_point):,} people")
        if self.items_for_point is not None:
            ways.append(f"at most {self.items_for_point:,} items")
        return f"{text} For ± 1 point: {', or '.join(ways)}." if ways else text


def accuracy(
    domain_size: int, epsilon: float, users: int, protocols: Iterable[str] | None = None
) -> Accuracy:
    """Return the accuracy of a round; of the best of all protocols unless given.

    Raises ParameterError.

        str(accuracy(290, 1.0, 5000))  # 'With 5,000 people each share is ± 5.4 points (95 %); …'
    """
    names = None if protocols is None else list(protocols)
    error = plan(PlanRequest(domain_size, users, epsilon), names).rounds[0].standard_error
    margin = math.inf if error is None else _NORMAL * error
    enough_users = enough_items = None
    if margin > _POINT:
        goal = _POINT / _NORMAL
        more = plan(PlanRequest(domain_size, None, epsilon, goal), names).best
        fewer = plan(PlanRequest(None, users, epsilon, goal), names).best
        enough_users = None if more is None else more.users
        enough_items = None if fewer is None else fewer.domain_size
    return Accuracy(domain_size, users, margin, enough_users, enough_items)


def _rounded_up(number: int) -> int:
    """Return a number with three digits, rounded up."""
    unit = 10 ** max(0, len(str(number)) - 3)
    return -(-number // unit) * unit

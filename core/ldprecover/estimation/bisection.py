"""Bisection: the end of the numbers at which a condition holds."""

from collections.abc import Callable


def bisect(condition: Callable[[float], bool], holds: float, fails: float, halvings: int) -> float:
    """Return a number at which the condition holds, next to those at which it does not.

    It holds at one end of the interval, `holds`, and not at the other. The interval is halved
    `halvings` times; the condition is evaluated within it.
    """
    for _ in range(halvings):
        middle = (holds + fails) / 2
        if condition(middle):
            holds = middle
        else:
            fails = middle
    return holds

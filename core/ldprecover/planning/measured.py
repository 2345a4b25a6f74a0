"""What recoveries left of attacks in one measured round of each protocol: cited from the pages, not
worked out.
"""

from dataclasses import dataclass
from functools import cache

PAGE = "docs/measurements/recovery.md#methods-compared"
"""Where these numbers are from, with all other methods and attacks."""

SETTING = (
    "389,894 users of 102 items, epsilon 0.5, beta 0.05, ten targets; mga-a and apa with r' = 4; "
    "means of 5 rounds; "
    "ldprecover is told the ten targets"
)
"""The round in which they were measured."""

_METHODS = ("none", "norm-sub", "ldprecover", "unmix")

# Of each method the mean squared error against the true frequencies, and the gain that is left to
# the targets.
_TABLE = """
grr  mga    5.5e-2 +7.14  1.2e-3 +0.96  2.0e-4 -0.04  7.6e-5 +0.06
grr  ria    5.7e-4 +0.05  1.7e-4 +0.03  2.1e-4 -0.04  8.2e-5 +0.04
oue  mga    7.2e-3 +2.54  1.1e-3 +0.92  5.3e-5 -0.08  1.4e-5 +0.01
oue  mga-a  1.1e-3 +0.94  7.0e-4 +0.78  5.2e-5 -0.08  1.6e-5 +0.01
oue  apa    1.0e-3 +0.95  6.9e-4 +0.78  5.2e-5 -0.08  1.6e-5 +0.01
oue  ria    4.2e-5 +0.05  3.0e-5 +0.04  5.2e-5 -0.08  1.6e-5 +0.03
olh  mga    5.0e-3 +2.26  1.1e-3 +0.93  5.2e-5 -0.07  1.4e-5 +0.01
olh  mga-a  1.2e-3 +1.05  7.6e-4 +0.81  5.2e-5 -0.07  1.5e-5 +0.02
olh  apa    1.0e-3 +0.96  7.1e-4 +0.79  5.2e-5 -0.07  1.5e-5 +0.01
olh  ria    4.1e-5 +0.04  3.1e-5 +0.04  5.1e-5 -0.07  1.6e-5 +0.03
sue  mga    5.7e-3 +2.26  1.1e-3 +0.93  5.2e-5 -0.07  1.3e-5 +0.01
sue  mga-a  8.4e-4 +0.83  6.2e-4 +0.75  5.2e-5 -0.07  1.4e-5 +0.02
sue  apa    8.1e-4 +0.85  6.1e-4 +0.74  5.1e-5 -0.07  1.5e-5 +0.02
sue  ria    4.3e-5 +0.05  3.1e-5 +0.05  5.1e-5 -0.07  1.5e-5 +0.04
ss   mga    6.7e-3 +2.49  1.1e-3 +0.93  5.6e-5 -0.07  2.1e-4 +0.04
ss   mga-a  9.7e-4 +0.94  6.9e-4 +0.79  5.4e-5 -0.07  1.2e-4 +0.11
ss   apa    9.6e-4 +0.93  6.9e-4 +0.79  5.4e-5 -0.07  1.7e-4 +0.15
ss   ria    4.0e-5 +0.05  3.2e-5 +0.04  5.3e-5 -0.07  1.8e-5 +0.03
hr   mga    3.5e-2 +1.63  3.4e-4 +0.15  3.2e-4 -0.08       -     -
hr   mga-a  1.0e-3 +0.77  4.6e-4 +0.59  2.2e-4 -0.08       -     -
hr   apa    1.0e-3 +0.77  4.6e-4 +0.58  2.2e-4 -0.08       -     -
hr   ria    4.6e-5 +0.04  3.2e-5 +0.04  4.9e-5 -0.08       -     -
"""


@dataclass(frozen=True)
class Measured:
    """What a method left of an attack: the mean squared error, and the gain of its targets
    together.

    The method `none` is no recovery: what the attack did.
    """

    attack: str
    method: str
    mse: float
    gain: float


def measured_of(protocol: str) -> tuple[Measured, ...]:
    """Return what was measured of a protocol; nothing of one that was not."""
    return _measured().get(protocol, ())


@cache
def _measured() -> dict[str, tuple[Measured, ...]]:
    found: dict[str, tuple[Measured, ...]] = {}
    for line in _TABLE.strip().splitlines():
        protocol, attack, *cells = line.split()
        pairs = zip(_METHODS, cells[::2], cells[1::2], strict=True)
        rows = tuple(
            Measured(attack, method, float(mse), float(gain))
            for method, mse, gain in pairs
            if mse != "-"
        )
        found[protocol] = found.get(protocol, ()) + rows
    return found

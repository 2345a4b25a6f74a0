"""Plans of rounds: of items, users, epsilon and error each from the other three, and what attackers
can gain.

The error is the standard error of what is asked for: of one item's estimate, or of the sum of
several, such as a bin, a range, or the first k. It is that among the users who report, at the
frequency that is given (paper, Lemma 2; `FrequencyOracle.partial_sum_variance`). It falls with the
root of the number of users, so users follow from an error in closed form; epsilon and the number of
items are searched for.
"""

from ldprecover.planning.curves import Curves
from ldprecover.planning.measured import PAGE, SETTING, Measured
from ldprecover.planning.plans import Plan, PlannedRound, plan
from ldprecover.planning.wish import MAX_TARGETS, MAX_USERS, Unknown, Wish

__all__ = [
    "MAX_TARGETS",
    "MAX_USERS",
    "PAGE",
    "SETTING",
    "Curves",
    "Measured",
    "Plan",
    "PlannedRound",
    "Unknown",
    "Wish",
    "plan",
]

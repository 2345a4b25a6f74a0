"""Plans of rounds: items, users, epsilon or error from the other three, and an attacker's gain.

The error is the standard error of one item's estimate, or of the sum of several items, such as a
bin or a range, at a given frequency (paper, Lemma 2; `estimation.partial_sum_variance`). It
falls with the square root of the number of users, so the users follow from an error in closed form.
Epsilon and the number of items are searched for. `plan_form` plans several questions.
"""

from ldprecover.planning.accuracy import Accuracy, accuracy
from ldprecover.planning.plans import FormPlan, Plan, PlannedRound, plan, plan_form
from ldprecover.planning.request import PlanRequest, Unknown

__all__ = [
    "Accuracy",
    "FormPlan",
    "Plan",
    "PlanRequest",
    "PlannedRound",
    "Unknown",
    "accuracy",
    "plan",
    "plan_form",
]

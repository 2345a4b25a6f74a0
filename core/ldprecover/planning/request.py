"""The request for a plan: the known parameters of a round, and the goals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ldprecover._checks import check_real, check_whole
from ldprecover.changes import least_change
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import partial_sum_variance
from ldprecover.items import whole
from ldprecover.planning.leads import Leads
from ldprecover.protocols import (
    MAX_DOMAIN_SIZE,
    MAX_EPSILON,
    MAX_USERS,
    MIN_EPSILON,
    FrequencyOracle,
)

_TARGETS = 10  # default number of targets, as in the paper (VI-A)
_BETA = 0.05  # default share of malicious users, as in the paper (VI-A)

_ABOVE = ("error", "gain", "lead", "change")  # 0

Unknown = Literal["domain_size", "users", "epsilon", "error"]
_UNKNOWNS: tuple[Unknown, ...] = ("domain_size", "users", "epsilon", "error")


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """Three of items, users, epsilon and error, and the attack to plan for. The fourth is solved.

    With a `lead` or a `change` the error may be missing too: these then determine the other.

    `domain_size` is 2 to 100,000 items, `users` 1 to 10^12 with one report each, and `epsilon` 0.01
    to 10. `error`, above 0 and at most 1, is the standard error of the sum of `sum_of` items that
    have the `frequency` together; by default one item, and 1/d for each item.

    `targets` is the number of items that an attacker raises together, by default min(10, d/2). Give
    `beta`, the share of malicious users, or `gain`, the tolerated rise of the targets' estimates;
    the other follows. By default beta is 0.05.

    `lead`, above 0 and at most 1, is a difference of two estimates. The round's certificate must
    prove that the first item is ahead, with 95 % confidence, if a share beta of its reports is
    malicious.

    `change`, above 0 and at most 1, is a rise of one item between two such rounds, which must be
    seen with probability .8: see `changes.least_change`.

    Raises ParameterError.

        PlanRequest(domain_size=102, epsilon=0.5, error=0.005)  # solves the users
        PlanRequest(domain_size=102, users=100_000, lead=0.05, beta=0.01)  # solves epsilon
    """

    domain_size: int | None = None
    users: int | None = None
    epsilon: float | None = None
    error: float | None = None
    sum_of: int = 1
    frequency: float | None = None
    targets: int | None = None
    beta: float | None = None
    gain: float | None = None
    lead: float | None = None
    change: float | None = None

    def __post_init__(self) -> None:
        missing = [name for name in _UNKNOWNS if getattr(self, name) is None]
        has_goal = self.lead is not None or self.change is not None
        if has_goal and len(missing) > 1 and self.error is None:
            missing.remove("error")
        if len(missing) != 1:
            problem = "all are given" if not missing else f"{' and '.join(missing)} are missing"
            raise ParameterError(f"all but one of {', '.join(_UNKNOWNS)} must be given: {problem}")
        d = whole(self.domain_size) or MAX_DOMAIN_SIZE
        ranges: dict[str, tuple[float, float]] = {
            "domain_size": (2, MAX_DOMAIN_SIZE),
            "users": (1, MAX_USERS),
            "sum_of": (1, d - 1),
            "targets": (1, d - 1),
            "epsilon": (MIN_EPSILON, MAX_EPSILON),
            "frequency": (0.0, 1.0),
            "beta": (0.0, 1.0),
            "error": (0.0, 1.0),
            "gain": (0.0, 1e6),
            "lead": (0.0, 1.0),
            "change": (0.0, 1.0),
        }
        for name, (low, high) in ranges.items():
            if (value := getattr(self, name)) is None:
                continue
            if isinstance(low, int):
                number: float = check_whole(name, value, low, high)
            else:
                number = check_real(name, value, low, high, above=name in _ABOVE)
            object.__setattr__(self, name, number)
        if self.beta is not None and self.gain is not None:
            raise ParameterError("beta or gain may be given, not both: the other follows")
        if self.lead is not None and self.gain is not None:
            raise ParameterError("lead and gain may not both be given: a lead needs beta")

    @property
    def solved(self) -> Unknown:
        """The field that is missing and will be solved; the error only if no other is missing."""
        return next(name for name in _UNKNOWNS if getattr(self, name) is None)

    def meets(self, oracle: FrequencyOracle, users: int) -> bool:
        """Return whether this many users give the error, show the change and protect the lead.

        Raises ParameterError.
        """
        if self.error is not None and self.error_of(oracle, users) > self.error:
            return False
        if self.change is not None and self.least_change_of(oracle, users) > self.change:
            return False
        return self.lead is None or self.leads_of(oracle, users).is_safe(self.lead, self.share)

    def leads_of(self, oracle: FrequencyOracle, users: int) -> Leads:
        """Return the leads of items in a round of this many users. Raises ParameterError."""
        return Leads(oracle, users, self.frequency if self.sum_of == 1 else None)

    def least_change_of(self, oracle: FrequencyOracle, users: int) -> float:
        """Return the least change between two rounds of this many users that is seen."""
        return least_change(oracle, users, self.frequency if self.sum_of == 1 else None)

    @property
    def share(self) -> float:
        """The share of malicious users, the default if none was given; not used with a gain."""
        return _BETA if self.beta is None else self.beta

    def error_of(self, oracle: FrequencyOracle, users: int) -> float:
        """Return the standard error of the requested sum from this many users. Raises
        ParameterError.
        """
        d = oracle.domain_size
        share = self.sum_of / d if self.frequency is None else self.frequency
        return math.sqrt(max(partial_sum_variance(oracle, self.sum_of, share, users), 0.0))

    def targets_of(self, d: int) -> int:
        """Return the number of targets among d items, the default if none was given."""
        return max(1, min(_TARGETS, d // 2)) if self.targets is None else self.targets

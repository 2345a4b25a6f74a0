"""Several attackers at once."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.types import FloatArray, Int64Array, Reports
from ldprecover_attacker.base import Attack, Plan

__all__ = ["Several"]


@dataclass(frozen=True)
class Several(Attack):
    """Malicious users assigned at random, each with equal probability, to attackers (paper, VII-C).

    Each attacker draws its own secrets, so Several([AA()] * 5) is the paper's five attackers with
    five distributions; together they are one attacker with the mean of their distributions: pi, S and
    gain are the means of theirs. An attack that is named several times has as many shares of the users.

    Raises ParameterError for no attacker.
    """

    name = "several"

    attacks: Sequence[Attack]

    def __post_init__(self) -> None:
        attacks = tuple(self.attacks)
        if not attacks or not all(isinstance(attack, Attack) for attack in attacks):
            raise ParameterError("attacks must be at least one attack")
        object.__setattr__(self, "attacks", attacks)

    def resolve(self, items: Sequence[str]) -> Self:
        return replace(self, attacks=[attack.resolve(items) for attack in self.attacks])

    def target_indices(self, d: int) -> Int64Array:
        """Return the items that any attacker with targets raises."""
        raised = []
        for attack in self.attacks:
            with suppress(ParameterError):
                raised.append(attack.target_indices(d))
        return np.unique(np.concatenate(raised)) if raised else super().target_indices(d)

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        plans = [attack.plan(oracle, rng) for attack in self.attacks]

        def send(m: int, rng: np.random.Generator) -> Reports:
            attacker = rng.integers(len(plans), size=m)
            reports = np.empty(m, dtype=oracle.report_dtype)
            for i, plan in enumerate(plans):
                users = np.flatnonzero(attacker == i)
                reports[users] = plan.send(users.size, rng)
            return reports

        def support(m: int) -> FloatArray:
            share = max(1, round(m / len(plans)))
            pi: FloatArray = np.mean([plan.support(share) for plan in plans], axis=0)
            return pi

        return Plan(send, support)

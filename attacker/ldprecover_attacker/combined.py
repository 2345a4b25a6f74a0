"""Attacks that are made of other attacks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.types import FloatArray, Int64Array, Reports, Rng
from ldprecover_attacker.base import Attack, AttackPlan, ItemAttack, honest_plan


@dataclass(frozen=True)
class InputPoisoning(Attack):
    """The items of another attack, perturbed honestly (paper, VII-B: MGA-IPA is
    InputPoisoning(MGA(...))).

    pi(v) = q + P(v)(p - q), so E f~_Y(v) = P(v), S = 1 and the gain on targets is beta(P(T) - f_T),
    at most beta(1 - f_T). Each report looks like an honest one. Only the distribution of
    items of the inner attack matters, not its report model, its subsets or its sizes.

    Raises ParameterError for an attack that draws no items.

        InputPoisoning(MGA([3, 40])).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "input-poisoning"

    attack: ItemAttack

    def __post_init__(self) -> None:
        if not isinstance(self.attack, ItemAttack):
            raise ParameterError("input poisoning needs an attack that draws items")

    def resolve(self, items: Sequence[str]) -> Self:
        return replace(self, attack=self.attack.resolve(items))

    def target_indices(self, d: int) -> Int64Array:
        return self.attack.target_indices(d)

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        return self.attack.distribution(d, rng)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        return honest_plan(oracle, self.attack.distribution(oracle.domain_size, rng))


@dataclass(frozen=True)
class Several(Attack):
    """Malicious users assigned at random to attackers (paper, VII-C).

    Each attacker draws its own secrets, so Several([AA()] * 5) is the paper's five attackers with
    five distributions; together they are one attacker with the mean of their distributions: pi, S
    and gain are the means of theirs. Each attacker has an equal share of the users; an attack that
    is named several times has as many.

    Raises ParameterError for no attacker.

        Several([AA()] * 5).reports(oracle, m=1000, rng=np.random.default_rng(0))
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

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        """Return the mean of the attackers' distributions."""
        return np.average([attack.distribution(d, rng) for attack in self.attacks], axis=0)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        plans = [attack.plan(oracle, rng) for attack in self.attacks]

        def send(m: int, rng: Rng) -> Reports:
            attacker = rng.integers(len(plans), size=m)
            reports = np.empty(m, dtype=oracle.wire.dtype)
            for i, plan in enumerate(plans):
                users = np.flatnonzero(attacker == i)
                reports[users] = plan.send(users.size, rng)
            return reports

        def support(m: int) -> FloatArray:
            users = max(1, round(m / len(plans)))
            return np.average([plan.support(users) for plan in plans], axis=0)

        return AttackPlan(send, support)

"""Several attackers at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover._types import Reports
from ldprecover_attacker.base import Attack

__all__ = ["Several"]


@dataclass(frozen=True)
class Several(Attack):
    """Malicious users assigned at random, each with equal probability, to attackers (paper, VII-C).

    Each attacker draws its own secrets, so Several([AA()] * 5) is the paper's five attackers with
    five distributions; together they are one attacker with the mean of their distributions.

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

    def _reports(self, oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Reports:
        attacker = rng.integers(len(self.attacks), size=m)
        reports = np.empty(m, dtype=oracle.report_dtype)
        for i, attack in enumerate(self.attacks):
            users = np.flatnonzero(attacker == i)
            reports[users] = attack.reports(oracle, users.size, rng)
        return reports

"""Input poisoning: malicious users who lie about their item and then follow the protocol."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover._types import Reports
from ldprecover_attacker.base import Attack, ItemAttack

__all__ = ["InputPoisoning"]


@dataclass(frozen=True)
class InputPoisoning(Attack):
    """The items of another attack, perturbed honestly (paper, VII-B: MGA-IPA is InputPoisoning(MGA(...))).

    E f~_Y(v) = P(v), so S = 1 and the gain on targets is at most beta(1 - f_T). No report can be told
    from an honest one. The inner attack's report model plays no part.

    Raises ParameterError for an attack that draws no items.
    """

    name = "input-poisoning"

    attack: ItemAttack

    def __post_init__(self) -> None:
        if not isinstance(self.attack, ItemAttack):
            raise ParameterError("input poisoning needs an attack that draws items")

    def resolve(self, items: Sequence[str]) -> Self:
        return replace(self, attack=self.attack.resolve(items))

    def _reports(self, oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Reports:
        return oracle.perturb(self.attack.draw_items(oracle.domain_size, m, rng), rng)

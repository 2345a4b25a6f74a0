"""Input poisoning: malicious users who lie about their item and then follow the protocol."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.types import FloatArray, Int64Array, Rng
from ldprecover_attacker.base import Attack, ItemAttack, Plan, draw_items


@dataclass(frozen=True)
class InputPoisoning(Attack):
    """The items of another attack, perturbed honestly (paper, VII-B: MGA-IPA is
    InputPoisoning(MGA(...))).

    pi(v) = q + P(v)(p - q), so E f~_Y(v) = P(v), S = 1 and the gain on targets is beta(P(T) - f_T),
    at most beta(1 - f_T). No report can be told from an honest one. Of the inner attack its
    distribution of items matters alone: its report model plays no part, nor how it chooses subsets
    or sizes.

    Raises ParameterError for an attack that draws no items.
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

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> Plan:
        return honest_plan(oracle, self.attack.distribution(oracle.domain_size, rng))


def honest_plan(oracle: FrequencyOracle, weights: FloatArray) -> Plan:
    """Return the plan to draw items from P and to report them as an honest user does."""
    return Plan(
        send=lambda m, rng: oracle.perturb(draw_items(weights, m, rng), rng),
        support=lambda m: oracle.laws.honest_support(weights),
        sizes=lambda: oracle.laws.size_law().probabilities(),
    )

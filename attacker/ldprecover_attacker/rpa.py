"""The random perturbed-value attack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ldprecover import FrequencyOracle
from ldprecover.laws.distributions import binomial_law
from ldprecover.protocols import crafter_of
from ldprecover.types import FloatArray, Rng
from ldprecover_attacker.base import ItemAttack, Plan


@dataclass(frozen=True)
class RPA(ItemAttack):
    """Sends reports drawn uniformly from all that can be sent (Cao et al., USENIX Security 2021).

    - GRR: a random item. pi = 1/d, S = 1.
    - OUE: each bit a fair coin. pi = 1/2, S = d(1/2 - q)/(p-q) = d: a shift common to all items.
    - OLH: a random seed and bucket. pi = q = 1/g, S = 0: as if nobody had reported.

    Lying about a random item and then following the protocol is InputPoisoning(RPA()).
    """

    name = "rpa"

    def resolve(self, items: Sequence[str]) -> Self:
        return self

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        return np.full(d, 1 / d)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> Plan:
        return Plan(
            send=crafter_of(oracle).uniform_reports,
            support=lambda m: np.full(oracle.domain_size, crafter_of(oracle).uniform_support),
            sizes=lambda: self._sizes(oracle),
        )

    def _sizes(self, oracle: FrequencyOracle) -> FloatArray | None:
        if not (oracle.traits.independent_bits or oracle.traits.seeded):
            return None
        return binomial_law(oracle.domain_size, crafter_of(oracle).uniform_support)

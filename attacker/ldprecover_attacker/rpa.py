"""The random perturbed-value attack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ldprecover import GRR, OLH, OUE, FrequencyOracle
from ldprecover.types import FloatArray, Reports
from ldprecover_attacker.base import ItemAttack, Plan
from ldprecover_attacker.crafting import unknown_protocol

__all__ = ["RPA"]


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

    def distribution(self, d: int, rng: np.random.Generator) -> FloatArray:
        return np.full(d, 1 / d)

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        d = oracle.domain_size
        rates = {GRR: 1 / d, OUE: 0.5, OLH: oracle.q}
        if type(oracle) not in rates:
            raise unknown_protocol(oracle)
        rate = rates[type(oracle)]
        return Plan(send=lambda m, rng: _random_reports(oracle, m, rng), support=lambda m: np.full(d, rate))


def _random_reports(oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Reports:
    d = oracle.domain_size
    if isinstance(oracle, OUE):
        rows = rng.integers(0, 256, size=(m, oracle.row_bytes), dtype=np.uint8)
        rows[:, -1] &= 0xFF >> (oracle.row_bytes * 8 - d)  # the padding bits are zero
        return rows
    if isinstance(oracle, OLH):
        seeds = rng.integers(0, 1 << 32, size=m, dtype=np.uint32)
        return oracle.reports(seeds, rng.integers(oracle.hash_range, size=m))
    return rng.integers(d, size=m, dtype=np.uint32)

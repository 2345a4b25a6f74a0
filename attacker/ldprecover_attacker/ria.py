"""The random item attack."""

from dataclasses import dataclass

import numpy as np

from ldprecover import FrequencyOracle
from ldprecover_attacker.base import Plan
from ldprecover_attacker.input_poisoning import honest_plan
from ldprecover_attacker.targets import TargetedAttack


@dataclass(frozen=True)
class RIA(TargetedAttack):
    """Claims a random target and follows the protocol (Cao et al., USENIX Security 2021).

    The law of InputPoisoning(MGA(targets)): S = 1 and the gain is beta(1 - f_T), for every
    protocol.
    """

    name = "ria"

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        return honest_plan(oracle, self.distribution(oracle.domain_size, rng))

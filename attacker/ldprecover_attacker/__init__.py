"""Poisoning attacks on frequency estimation under local differential privacy: what malicious users report.

Every attack is one contract, `Attack.reports(oracle, m, rng)`; a `Campaign` posts them to a round
through the door that genuine users use.
"""

from ldprecover_attacker.adaptive import AA
from ldprecover_attacker.base import MODELS, Attack, ItemAttack
from ldprecover_attacker.campaign import Campaign, CampaignResult
from ldprecover_attacker.catalogue import ATTACKS, make_attack
from ldprecover_attacker.input_poisoning import InputPoisoning
from ldprecover_attacker.manip import Manip
from ldprecover_attacker.mga import MGA
from ldprecover_attacker.several import Several

__all__ = [
    "AA",
    "ATTACKS",
    "MGA",
    "MODELS",
    "Attack",
    "Campaign",
    "CampaignResult",
    "InputPoisoning",
    "ItemAttack",
    "Manip",
    "Several",
    "make_attack",
]

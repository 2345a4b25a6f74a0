"""Poisoning attacks on frequency estimation under local differential privacy.

Every attack has one contract: `Attack.reports(oracle, m, rng)` makes its reports, and `support`,
`size_law`, `support_sum` and `gain` state their expectations. A `Campaign` posts the reports to a
round by the interface of genuine users. The attacks need numpy alone; a campaign needs the client,
which it imports at its first use.

    MGA([3, 40]).reports(oracle, m=1000, rng=np.random.default_rng(0))
"""

from typing import TYPE_CHECKING

from ldprecover_attacker.adaptive import AA
from ldprecover_attacker.apa import APA
from ldprecover_attacker.apa2 import APA2
from ldprecover_attacker.base import MODELS, Attack, ItemAttack, ModelledAttack, Plan
from ldprecover_attacker.catalogue import ATTACKS, attack_options, make_attack
from ldprecover_attacker.input_poisoning import InputPoisoning
from ldprecover_attacker.manip import Manip
from ldprecover_attacker.mga import MGA
from ldprecover_attacker.mga_a import MGAA
from ldprecover_attacker.mla import AGAINST, MLA
from ldprecover_attacker.ria import RIA
from ldprecover_attacker.rpa import RPA
from ldprecover_attacker.several import Several
from ldprecover_attacker.targets import SubsetAttack, TargetedAttack
from ldprecover_client.lazy_names import lazy_getattr

if TYPE_CHECKING:
    from ldprecover_attacker.campaign import Campaign, CampaignResult

__all__ = [
    "AA",
    "AGAINST",
    "APA",
    "APA2",
    "ATTACKS",
    "MGA",
    "MGAA",
    "MLA",
    "MODELS",
    "RIA",
    "RPA",
    "Attack",
    "Campaign",
    "CampaignResult",
    "InputPoisoning",
    "ItemAttack",
    "Manip",
    "ModelledAttack",
    "Plan",
    "Several",
    "SubsetAttack",
    "TargetedAttack",
    "attack_options",
    "make_attack",
]

__getattr__ = lazy_getattr(
    __name__, dict.fromkeys(("Campaign", "CampaignResult"), "campaign"), "attacker"
)

"""Poisoning attacks on frequency estimation under local differential privacy.

Every attack has one contract: `Attack.reports(oracle, m, rng)` makes its reports, and `support`,
`support_sum` and `gain` state their expectations. A `Campaign` posts the reports to a
round by the interface of genuine users. The attacks need numpy alone; a campaign needs the client,
which it imports at its first use.

    MGA([3, 40]).reports(oracle, m=1000, rng=np.random.default_rng(0))
"""

from typing import TYPE_CHECKING

from ldprecover.lazy_names import lazy_getattr
from ldprecover_attacker.arguments import AGAINST
from ldprecover_attacker.base import MODELS, Attack, AttackPlan, ItemAttack, ModelledAttack
from ldprecover_attacker.cancel import Cancel
from ldprecover_attacker.catalogue import ATTACKS, attack_options, make_attack
from ldprecover_attacker.combined import InputPoisoning, Several
from ldprecover_attacker.functions import attack_class
from ldprecover_attacker.mimicry import Mimicry
from ldprecover_attacker.subsets import APA, MGAA, SubsetAttack
from ldprecover_attacker.targeted import APA2, MGA, RIA, Joint, TargetedAttack
from ldprecover_attacker.untargeted import AA, MLA, RPA, Manip

if TYPE_CHECKING:
    from ldprecover_attacker.campaign import Campaign, CampaignResult, FormCampaign

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
    "AttackPlan",
    "Campaign",
    "CampaignResult",
    "Cancel",
    "FormCampaign",
    "InputPoisoning",
    "ItemAttack",
    "Joint",
    "Manip",
    "Mimicry",
    "ModelledAttack",
    "Several",
    "SubsetAttack",
    "TargetedAttack",
    "attack_class",
    "attack_options",
    "make_attack",
]

__getattr__ = lazy_getattr(
    __name__, dict.fromkeys(["Campaign", "CampaignResult", "FormCampaign"], "campaign"), "attacker"
)

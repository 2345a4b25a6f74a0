"""Oracles and attacks that the whole suite runs over."""

from tests.attacker.strategies import refusal

from ldprecover import GRR, OLH, OUE, frequency_oracle
from ldprecover.protocols import PROTOCOLS
from ldprecover_attacker import (
    AA,
    APA,
    APA2,
    MGA,
    MGAA,
    MLA,
    RIA,
    RPA,
    Attack,
    Cancel,
    InputPoisoning,
    Joint,
    Manip,
    Mimicry,
    Several,
)

ORACLES = [
    GRR(0.5, 21),
    OUE(0.5, 21),
    OLH(0.5, 21, 3),
    OLH(2.0, 21, 300),
    GRR(1.0, 5),
    OUE(1.0, 5),
    OLH(1.0, 5, 2),
]
ORACLES += [
    frequency_oracle(name, 0.5, 21) for name in PROTOCOLS if name not in ("grr", "oue", "olh")
]


def attacks_on(targets: tuple[int, ...]) -> dict[str, Attack]:
    """Return an attack of every kind; item 1 is no target."""
    one, few = targets[:1], targets[:3]
    return {
        "rpa": RPA(),
        "ria": RIA(targets),
        "mga sampled": MGA(targets, model="sampled"),
        "mga crafted": MGA(targets),
        "mga, one target": MGA(one),
        "mga, one seed": MGA(few, search=1),
        "mga, perfect seeds": MGA(few, search="exhaustive"),
        "mga-a": MGAA(targets),
        "mga-a, one target": MGAA(one, search=50),
        "mga-a, 2 each": MGAA(targets, 2, search=100),
        "apa": APA(targets),
        "apa, one each": APA(few, 1, search=50),
        "apa2": APA2(targets),
        "apa2, 0.42": APA2(targets, rate=0.42, search=30),
        "cancel": Cancel(targets),
        "joint": Joint(few),
        "joint, with an item": Joint(few, rate=0.4, item=1),
        "mimicry": Mimicry(targets),
        "mimicry, one target": Mimicry(one),
        "mla": MLA(),
        "mla raw": MLA(one[0], against="raw"),
        "manip sampled": Manip(model="sampled"),
        "manip crafted": Manip(),
        "aa diffuse sampled": AA(model="sampled"),
        "aa diffuse crafted": AA(),
        "aa peaked sampled": AA("peaked", model="sampled"),
        "aa peaked crafted": AA("peaked", 4),
        "rpa input poisoning": InputPoisoning(RPA()),
        "mga input poisoning": InputPoisoning(MGA(targets)),
        "manip input poisoning": InputPoisoning(Manip()),
        "aa input poisoning": InputPoisoning(AA("peaked")),
        "mla input poisoning": InputPoisoning(MLA()),
        "five attackers": Several([AA()] * 5),
        "a mixture": Several(
            [MGA(targets), MGAA(targets, 1, search=50), RPA(), MLA(), InputPoisoning(Manip())]
        ),
    }


ATTACKS = attacks_on((3, 0, 4))
CASES = {
    f"{name}-{oracle}": (oracle, attack)
    for name, attack in ATTACKS.items()
    for oracle in ORACLES
    if refusal(attack, oracle) is None
}

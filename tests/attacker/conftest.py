"""Oracles and attacks that the whole suite runs over."""

from tests.attacker.strategies import has_room_together, tosses_coins

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

ATTACKS = {
    "mga crafted": MGA([3, 0, 4]),
    "mga crafted, one target": MGA([2]),
    "mga crafted, exhaustive": MGA([1, 4], search="exhaustive"),
    "mga crafted, one seed": MGA([1, 2, 3], search=1),
    "mga sampled": MGA([3, 0, 4], model="sampled"),
    "manip crafted": Manip(),
    "manip sampled": Manip(2, model="sampled"),
    "diffuse aa crafted": AA(),
    "diffuse aa sampled": AA(model="sampled"),
    "peaked aa crafted": AA("peaked", 4),
    "peaked aa sampled": AA("peaked", model="sampled"),
    "mga input poisoning": InputPoisoning(MGA([3, 0])),
    "manip input poisoning": InputPoisoning(Manip()),
    "aa input poisoning": InputPoisoning(AA()),
    "five diffuse attackers": Several([AA()] * 5),
    "rpa": RPA(),
    "ria": RIA([3, 0, 4]),
    "mga-a": MGAA([3, 0, 4], search=50),
    "mga-a, one target": MGAA([2], search=50),
    "apa": APA([1, 4], 1, search=50),
    "apa2": APA2([3, 0], search=50),
    "joint": Joint([3, 0]),
    "joint, with an item": Joint([3, 0], rate=0.5, item=4),
    "mimicry": Mimicry([3, 0]),
    "mla": MLA(search=50),
    "mla, raw, on an item": MLA(2, against="raw", search=50),
    "mla input poisoning": InputPoisoning(MLA()),
    "five of all": Several([RPA(), RIA([1]), MGAA([0, 1], search=20), MLA(search=20), AA()]),
    "a mixture": Several(
        [MGA([0, 1], model="sampled"), InputPoisoning(Manip(3)), Several([MGA([2, 3])])]
    ),
}


NO_ROOM = OLH(2.0, 21, 300)  # an honest report supports 0.09 items
REFUSED = {("apa", NO_ROOM), ("apa2", NO_ROOM)} | {
    ("apa2", oracle) for oracle in ORACLES if not tosses_coins(oracle)
}
REFUSED |= {
    (name, oracle)
    for name, r in (("joint", 2), ("joint, with an item", 3))
    for oracle in ORACLES
    if not has_room_together(oracle, r)
}
CASES = {
    f"{name}-{oracle}": (oracle, attack)
    for name, attack in ATTACKS.items()
    for oracle in ORACLES
    if (name, oracle) not in REFUSED
}

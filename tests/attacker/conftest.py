"""Oracles and attacks that the whole suite runs over, and the exact law of a seed search."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle
from ldprecover_attacker import AA, APA, APA2, MGA, MGAA, MLA, RIA, RPA, Attack, InputPoisoning, Manip, Several

ORACLES = [GRR(0.5, 21), OUE(0.5, 21), OLH(0.5, 21, 3), OLH(2.0, 21, 300), GRR(1.0, 5), OUE(1.0, 5), OLH(1.0, 5, 2)]

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
    "mla": MLA(search=50),
    "mla, raw, on an item": MLA(2, against="raw", search=50),
    "mla input poisoning": InputPoisoning(MLA()),
    "five of all": Several([RPA(), RIA([1]), MGAA([0, 1], search=20), MLA(search=20), AA()]),
    "a mixture": Several([MGA([0, 1], model="sampled"), InputPoisoning(Manip(3)), Several([MGA([2, 3])])]),
}


NO_ROOM = OLH(2.0, 21, 300)  # an honest report supports 0.09 items
REFUSED = {("apa", NO_ROOM), ("apa2", NO_ROOM)} | {("apa2", oracle) for oracle in ORACLES if isinstance(oracle, GRR)}
CASES = {
    f"{name}-{oracle}": (oracle, attack)
    for name, attack in ATTACKS.items()
    for oracle in ORACLES
    if (name, oracle) not in REFUSED
}


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> tuple[FrequencyOracle, Attack]:
    return request.param


@pytest.fixture
def oracle(case: tuple[FrequencyOracle, Attack]) -> FrequencyOracle:
    return case[0]


@pytest.fixture
def attack(case: tuple[FrequencyOracle, Attack]) -> Attack:
    return case[1]


BestHits = Callable[[int, int, int], tuple[float, float]]


@pytest.fixture(scope="session")
def best_hits() -> BestHits:
    """(r, g, budget) -> mean and variance of the fullest bucket's items in the best of `budget` seeds.

    Under an ideal hash the items of a bucket, given how many fall in all g, are Poisson(r/g) variables conditioned
    on their sum r, so P(fullest <= k) is the r-th term of the g-fold convolution of a Poisson law cut at k, over
    the r-th term of Poisson(r).
    """

    def law(r: int, g: int, budget: int) -> tuple[float, float]:
        poisson = np.array([math.exp(-r / g) * (r / g) ** j / math.factorial(j) for j in range(r + 1)])
        total = math.exp(-r) * r**r / math.factorial(r)
        at_most = np.zeros(r + 1)
        for k in range(1, r + 1):
            cut = np.where(np.arange(r + 1) <= k, poisson, 0.0)
            convolved = np.eye(1, r + 1)[0]
            for _ in range(g):
                convolved = np.convolve(convolved, cut)[: r + 1]
            at_most[k] = min(1.0, convolved[r] / total) ** budget
        mass = np.diff(at_most, prepend=0.0)
        hits = np.arange(r + 1)
        mean = float(mass @ hits)
        return mean, float(mass @ hits**2) - mean**2

    return law

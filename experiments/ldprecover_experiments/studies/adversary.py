"""An adversary of un-mixing: random mixes of malicious reports in random worlds, and the worst.

Malicious users are divided among one to three parts. Each part has targets among the popular,
middling or rare items. Its reports are honest otherwise, and support all targets, none, an exact
number, those of a coin each, or as many as by chance, in random shares.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ldprecover import RecoveryRequest, Tally, frequency_oracle
from ldprecover.crafting import DEFAULT_SEARCH, crafter_of
from ldprecover.distributions import binomial_law
from ldprecover.estimation.metrics import mse
from ldprecover.recovery.conclusions import NEAR_CERTAIN
from ldprecover.sentences import counted
from ldprecover_client import Population
from ldprecover_experiments.simulation.parameters import malicious_users
from ldprecover_experiments.simulation.poisoned_round import PoisonedRound

_NAMED = 0.6  # least probability of an item that counts as named
_RAISED = 0.1  # least frequency of a raised item, by the malicious reports alone


def play(seed: int, i: int) -> tuple[str, dict[str, float]]:
    """Return what round i of a seed is, and what the adversary reaches against `auto`."""
    rng = np.random.default_rng([seed, i])
    protocol, epsilon = rng.choice(["oue", "sue", "olh", "ss", "llh"]), rng.choice([0.5, 1, 2])
    d, n = int(rng.integers(24, 200)), int(10 ** rng.uniform(4.3, 5.5))
    beta = rng.choice([0.01, 0.02, 0.05])
    oracle = frequency_oracle(protocol, epsilon, d)
    weights = np.exp(rng.uniform(0.3, 2.5) * rng.standard_normal(d))
    clean = PoisonedRound.clean(oracle, Population(weights, n, seed=i))
    groups = np.array_split(np.argsort(-clean.truth), 3)
    parts = []
    for _ in range(rng.integers(1, 4)):
        r = int(rng.integers(2, 9))
        certain = np.eye(r + 1)
        laws = [certain[r], certain[0], certain[rng.integers(1, r)]]
        laws += [binomial_law(r, rate) for rate in (rng.random(), oracle.q)]
        targets = rng.choice(groups[rng.integers(3)], r, replace=False)
        law = rng.dirichlet(np.full(5, 0.4)) @ laws
        parts.append(crafter_of(oracle).hit_reports(targets, law, DEFAULT_SEARCH))
    m = malicious_users(n, beta) // len(parts)
    reports = np.concatenate([clean.reports, *(send(m, rng) for send, _ in parts)])
    rise = np.mean([oracle.estimate(support(m), 1) for _, support in parts], axis=0)
    raised = [item for item in np.argsort(-rise).tolist() if rise[item] > _RAISED]
    round_ = replace(clean, malicious=Tally.of(oracle, reports[n:]), reports=reports)
    recovery, projected = (round_.recover(RecoveryRequest(name)) for name in ("auto", "norm-sub"))
    conclusions = recovery.conclusions
    gain = float((round_.poisoned.frequencies - round_.f_genuine)[raised[:10]].sum())
    assert conclusions is not None
    if (conclusions.attack_probability or 0.0) >= NEAR_CERTAIN:
        gain = 0.0
    named = {item for item, probability in conclusions.suspects if probability > _NAMED}
    errors = [mse(each.recovered, clean.truth) for each in (recovery, projected)]
    measures = {
        "error, over projection's": errors[0] / errors[1],
        "gain of ten items with P < .9, over the unseen one": gain / conclusions.unseen[0].gain,
        "innocents named": float(len(named.difference(raised))),
        "beta, over the true one": (conclusions.beta or 0.0) * len(reports) / (len(reports) - n),
    }
    label = f"{i}: {protocol}, epsilon {epsilon:g}, {n:,} users, {d} items, beta {beta:g}"
    return f"{label}, {counted(len(parts), 'part')}, {len(raised)} raised", measures

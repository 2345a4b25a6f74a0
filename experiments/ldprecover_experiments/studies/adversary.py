"""An adversary of un-mixing: random mixes of malicious reports in random worlds, and the worst.

Malicious users are divided among one to three parts. Each part has targets among the popular,
middling or rare items. Its reports are honest otherwise, and support all targets, none, an exact
number, those of a coin each, or as many as by chance, in random shares.
"""

from __future__ import annotations

from collections.abc import Callable
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
from ldprecover_experiments.simulation.tables import TextTable

GOALS = {
    "error, over projection's": 1.0,
    "gain of ten items with P < .9, over the unseen one": 1.0,
    "innocents named": 0.0,
    "beta, over the true one": 1.0,
}
"""The goals, each with the value above which a round reaches it."""

_NAMED = 0.6  # least probability of an item that counts as named
_RAISED = 0.1  # least frequency of a raised item, by the malicious reports alone


def play(seed: int, i: int) -> tuple[list[float], str]:
    """Return the values of GOALS in round i of a seed, by `auto`, and what the round is."""
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
    values = [
        mse(recovery.recovered, clean.truth) / mse(projected.recovered, clean.truth),
        gain / conclusions.unseen[0].gain,
        float(len(named.difference(raised))),
        (conclusions.beta or 0.0) * len(reports) / (len(reports) - n),
    ]
    label = f"{i}: {protocol}, epsilon {epsilon:g}, {n:,} users, {d} items, beta {beta:g}"
    return values, f"{label}, {counted(len(parts), 'part')}, {len(raised)} raised"


def adversary(seed: int, rounds: int, progress: Callable[[int, int], None]) -> TextTable:
    """Return a table of the goals: how many rounds reached each, and the worst of them."""
    played = []
    for i in range(rounds):
        played.append(play(seed, i))
        progress(i + 1, rounds)
    rows = []
    for goal, (title, limit) in enumerate(GOALS.items()):
        values, label = max(played, key=lambda each: each[0][goal])
        number = sum(each[goal] > limit for each, _ in played)
        rows.append([title, label, str(number), f"{values[goal]:.2f}"])
    title = f"adversary: {rounds:,} rounds of seed {seed}"
    return TextTable(("goal", "worst round", "rounds", "worst"), rows, title, 2)

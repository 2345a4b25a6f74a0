"""Play attacks at limits of the unseen gain, and count those that the tests see.

python docs/scripts/unseen_gains.py [ROUNDS]

Malicious reports, 5 % of all, support ten of the 102 largest cities by the law of the largest gain
whose moments of pairs and triples are within s standard errors. Each row says in how many of the
rounds P is .9 or more.
"""

import sys

import numpy as np

from ldprecover import frequency_oracle
from ldprecover.crafting import DEFAULT_SEARCH, crafter_of
from ldprecover.evidence.unseen import SHARE, found_at, unseen_law
from ldprecover.recovery.contract import RecoveryInputs
from ldprecover.recovery.unmixing import filter_reports
from ldprecover.recovery.unmixing.evidence import evidence_of
from ldprecover.reports import ReportSource
from ldprecover_experiments import dataset_of

CELLS = [("oue", 0.5), ("oue", 1.0), ("oue", 2.0), ("sue", 1.0), ("ss", 1.0)]
ITEMS = 10
COUNTS = dataset_of("cities").counts
LIMITS = [4.0, 5.0, 6.0, 8.0, found_at(COUNTS.size, ITEMS)]


def probability(protocol: str, epsilon: float, n: int, limit: float, seed: int) -> float:
    """Return P of a round of n reports."""
    oracle, rng = frequency_oracle(protocol, epsilon, COUNTS.size), np.random.default_rng(seed)
    law, m = unseen_law(oracle, n, ITEMS, SHARE, limit), round(SHARE * n)
    targets = rng.choice(COUNTS.size, ITEMS, replace=False)
    craft, _ = crafter_of(oracle).hit_reports(targets, law, DEFAULT_SEARCH)
    honest = oracle.perturb(rng.choice(COUNTS.size, n - m, p=COUNTS / COUNTS.sum()), rng)
    reports = rng.permutation(np.concatenate([honest, craft(m, rng)]))
    source, z = ReportSource(oracle, reports), oracle.estimate(oracle.support_counts(reports), n)
    log_p = filter_reports(source).log_p
    return evidence_of(RecoveryInputs(oracle, z, n=n, reports=source), log_p).probability


if __name__ == "__main__":
    seeds = range(int((sys.argv[1:] or ["10"])[0]))
    for n in (60_000, 400_000):
        for cell in CELLS:
            numbers = [sum(probability(*cell, n, s, i) >= 0.9 for i in seeds) for s in LIMITS]
            sys.stdout.write(f"{n} {cell} {numbers}\n")

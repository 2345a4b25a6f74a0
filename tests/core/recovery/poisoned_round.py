"""A poisoned round whose truth is known, for tests of the methods that read reports."""

from functools import cache
from typing import NamedTuple

import numpy as np

from ldprecover import GRR, OLH, OUE, FrequencyOracle
from ldprecover_attacker import MGA

D, N, M = 60, 20_000, 1_500
TARGETS = ((7, 19, 22, 31, 40, 51), (3, 9, 14, 29, 35, 58))
"""The targets of two attackers."""
ORACLES: dict[str, FrequencyOracle] = {"grr": GRR(1, D), "oue": OUE(1, D), "olh": OLH(1, D, 4)}


def estimates_of(oracle: FrequencyOracle, reports: np.ndarray) -> np.ndarray:
    """Return the unbiased frequencies of these reports."""
    return oracle.estimate(oracle.support_counts(reports), len(reports))


class PoisonedRound(NamedTuple):
    """The users' frequencies, their reports, all reports, and the estimates from these."""

    truth: np.ndarray
    genuine: np.ndarray
    reports: np.ndarray
    f_z: np.ndarray


@cache
def poisoned(oracle: FrequencyOracle, *attacks: tuple[int, ...]) -> PoisonedRound:
    """Return N honest reports and M crafted ones for the targets of each attack, shuffled. Seeded.

    Without a target there is one attack, on TARGETS[0].
    """
    rng = np.random.default_rng(11)
    truth = 1 / np.arange(1, D + 1)
    truth /= truth.sum()
    genuine = oracle.perturb(rng.choice(D, N, p=truth), rng)
    crafted = [MGA(targets).reports(oracle, M, rng) for targets in attacks or TARGETS[:1]]
    reports = np.concatenate([genuine, *crafted])
    rng.shuffle(reports)
    return PoisonedRound(truth, genuine, reports, estimates_of(oracle, reports))

"""A poisoned round whose truth is known, for tests of the methods that read reports."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    Recovery,
    RecoveryRequest,
    Tally,
    project_simplex,
    recover,
)
from ldprecover.reports import tally_sampler
from ldprecover_attacker import MGA, Attack

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


class Round(NamedTuple):
    """The users' frequencies, and the reports of a round, or their tally."""

    oracle: FrequencyOracle
    truth: np.ndarray
    data: Any

    @property
    def tally(self) -> Tally:
        is_tally = isinstance(self.data, Tally)
        return self.data if is_tally else Tally.of(self.oracle, self.data)

    @property
    def estimates(self) -> np.ndarray:
        return self.oracle.estimate(self.tally.counts(self.oracle), self.tally.n)

    def gain(self, frequencies: np.ndarray) -> float:
        """Return projection's squared error over that of these frequencies."""
        each = (project_simplex(self.estimates), frequencies)
        projected, error = (((f - self.truth) ** 2).sum() for f in each)
        return float(projected / error)

    def unmixed(self, **fields: Any) -> tuple[Recovery, Any, float]:
        """Return the recovery, its conclusions and its gain."""
        result = recover(self.oracle, self.data, RecoveryRequest("unmix", **fields))
        return result, result.conclusions, self.gain(result.recovered)


def play(
    oracle: FrequencyOracle,
    weights: ArrayLike,
    n: int,
    *attacks: Attack,
    m: int = 0,
    seed: int | list[int] = 1,
    tallied: bool = False,
) -> Round:
    """Return a round of n users, who hold items by these weights, and of m/k reports of each of k
    attacks. `tallied` simulates the tally alone.
    """
    rng = np.random.default_rng(seed)
    users = rng.multinomial(n, np.divide(weights, np.sum(weights)))
    crafted = [attack.reports(oracle, m // len(attacks), rng) for attack in attacks]
    if tallied:
        tally = tally_sampler(oracle).honest_tally(users, rng)
        for reports in crafted:
            tally += Tally.of(oracle, reports)
        return Round(oracle, users / n, tally)
    honest = oracle.perturb(np.repeat(np.arange(users.size), users), rng)
    return Round(oracle, users / n, np.concatenate([honest, *crafted]))

"""An attack whose pairs of targets cancel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.crafting import DEFAULT_SEARCH, crafter_of
from ldprecover.types import FloatArray, Rng
from ldprecover_attacker.base import AttackPlan
from ldprecover_attacker.targeted import TargetedAttack


@dataclass(frozen=True)
class Cancel(TargetedAttack):
    """Supports lo or hi random targets, so that pairs of targets go together as by chance.

    Reports are honest otherwise. The mean over reports of the sum of (x_v - q)(x_w - q) over the
    pairs of targets is exactly 0, as for honest reports; x_v is 1 if a report supports v, else 0.
    lo, hi and their shares are those with the most targets supported. Pairs show nothing then, but
    triples and the histogram of the number of targets do.

    - OUE, SUE, SS: as many ones as an honest report.
    - OLH: of 1,000 random seeds, that which hashes the nearest number of targets to a random
      bucket. Other items are supported as by chance, so the sum of the estimates shows it.
    - LLH: random ones of the reports that support this number, likewise.
    - GRR, HR: ParameterError.

    The gain is beta ((h - rq)/(p-q) - f_T), h the mean number of targets: near the greater root of
    (h - rq)^2 = h(1 - 2q) + rq^2.

        Cancel([3, 40, 41, 42]).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "cancel"

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        targets, crafter = self.target_indices(oracle.domain_size), crafter_of(oracle)
        law = cancelling_law(oracle, crafter.hit_laws(targets, DEFAULT_SEARCH))
        return AttackPlan(*crafter.hit_reports(targets, law, DEFAULT_SEARCH))


def pair_moments(oracle: FrequencyOracle, r: int) -> FloatArray:
    """Return the sum over the pairs of r items of a statistic with mean 0 for honest reports.

    Entry k is for a report that supports k of them. For independent bits the statistic of a pair is
    (x_v - q)(x_w - q).
    """
    p, q, k = oracle.p, oracle.q, np.arange(r + 1)
    neither, one = q * q, p * q  # P(both supported) if the user holds neither, or one of them
    if (size := oracle.fixed_size) is not None:
        neither = oracle.laws.hits_of_others(k[:2])[2]
        one = p * (size - 1) / (oracle.domain_size - 1)
    slope = (one - neither) / (p - q)
    moments: FloatArray = k * (k - 1) / 2 - slope * (r - 1) * k
    return moments - (neither - 2 * q * slope) * r * (r - 1) / 2


def cancelling_law(oracle: FrequencyOracle, hit_laws: FloatArray) -> FloatArray:
    """Return the law of goals with the most hits of those whose mean pair moment is 0.

    The moment is a convex function of the hits, so these are two adjacent goals. Raises
    ParameterError if the moment of each goal is above 0, or of each below.
    """
    r = len(hit_laws) - 1
    moments = (hit_laws @ pair_moments(oracle, r)).round(12)  # without rounding errors
    if not moments.min() <= 0 <= moments[r]:
        raise ParameterError(f"no {oracle.protocol} reports cancel the pairs of these targets")
    low = int(np.flatnonzero(moments <= 0)[-1])
    high = min(low + 1, r)
    law = np.zeros(r + 1)
    law[high] = moments[low] / (moments[low] - moments[high]) if moments[low] else 0.0
    law[low] = 1 - law[high]
    return law

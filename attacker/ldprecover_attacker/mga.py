"""The maximal gain attack."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from ldprecover import FrequencyOracle
from ldprecover.crafting.search_laws import most_hits_law
from ldprecover.laws.distributions import binomial_law
from ldprecover.protocols import DEFAULT_SEARCH, crafter_of
from ldprecover.types import FloatArray
from ldprecover_attacker.arguments import check_search
from ldprecover_attacker.base import ModelledAttack, Plan, exact_size, padded_sizes
from ldprecover_attacker.targets import TargetedAttack


@dataclass(frozen=True)
class MGA(TargetedAttack, ModelledAttack):
    """Raises the estimates of r target items as far as reports can (Cao et al., USENIX Security
    2021).

    Sampled (paper, VI-A): P is 1/r on each target. Crafted (Cao et al.): every report supports as
    many targets as one report of its protocol can, and about as many items as an honest report
    does:

    - GRR: one target, drawn uniformly (the same law as sampled);
    - OUE: all r targets, and other items drawn afresh for each report up to L = floor(p + (d-1)q)
      ones;
    - OLH: the best of `search` random seeds of each user's own, and the bucket that holds most
      targets; search="exhaustive" scans the seeds of the hash until every user has a perfect one
      (`ldprecover.crafting.seed_search` says what that costs).

    S is 1 for GRR, (max(L, r) - qd)/(p-q) for crafted OUE, (h - rq)/(p-q) for crafted OLH, where h
    is the mean number of targets a report supports; sampled, (1 - qd)/(p-q) for OUE and (1-q)/(p-q)
    for OLH. The gain is beta ((h - rq)/(p-q) - f_T).
    """

    name = "mga"

    _: KW_ONLY
    search: int | Literal["exhaustive"] = DEFAULT_SEARCH

    def __post_init__(self) -> None:
        TargetedAttack.__post_init__(self)
        ModelledAttack.__post_init__(self)
        check_search(self.search)

    def _crafted(self, oracle: FrequencyOracle, weights: FloatArray) -> Plan:
        targets = self.target_indices(oracle.domain_size)
        r = targets.size
        return Plan(
            send=lambda m, rng: crafter_of(oracle).craft(
                np.broadcast_to(targets, (m, r)), rng, search=self.search
            ),
            support=lambda m: crafter_of(oracle).crafted_support(
                weights * r, r, search=self.search, m=m
            ),
            sizes=lambda: self._sizes(oracle, r),
        )

    def _sizes(self, oracle: FrequencyOracle, r: int) -> FloatArray | None:
        if not oracle.traits.seeded:
            return padded_sizes(oracle, r)
        assert oracle.parameter is not None  # every protocol with seeds has buckets
        buckets = oracle.own[oracle.parameter.name]
        hits = (
            exact_size(r, r)
            if self.search == "exhaustive"
            else most_hits_law(r, buckets, self.search)
        )
        # The bucket holds the other items by chance.
        return np.convolve(hits, binomial_law(oracle.domain_size - r, oracle.q))

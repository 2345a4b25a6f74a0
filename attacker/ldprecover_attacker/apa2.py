"""The coin-tossing pattern attack."""

from dataclasses import dataclass, field

import numpy as np

from ldprecover import OLH, OUE, FrequencyOracle, ParameterError, kernels
from ldprecover.alarms import support_size_law
from ldprecover.types import FloatArray, Int64Array, Reports, UInt8Array
from ldprecover_attacker.base import Plan
from ldprecover_attacker.crafting import (
    DEFAULT_SEARCH,
    check_search,
    expected_size,
    lowest_keys,
    unknown_protocol,
    wanted_support,
)
from ldprecover_attacker.honest_sizes import binomial, draw_sizes
from ldprecover_attacker.seed_law import hits_near
from ldprecover_attacker.seed_search import tried_seeds
from ldprecover_attacker.targets import TargetedAttack

__all__ = ["APA2"]

_LIKELY = 1e-18


@dataclass(frozen=True)
class APA2(TargetedAttack):
    """Supports each target by a coin of its own, in reports that are otherwise honest ones.

    No two targets are then supported together more often than two independent items of that rate, and
    no report stands out by its size. `rate` is the probability of a coin, above 0 and below 1; the fair
    coin of the default pays because honest reports support an item they do not hold with q < 1/2.

    - OUE: k ones, drawn as an honest report's number of them; h of the r targets, drawn from
      Binomial(r, rate) (as near to it as k ones and d - r others allow); k - h random others.
    - OLH: of `search` random seeds of the user's own, and a random bucket, the seed that hashes the
      number of targets nearest to such an h to the bucket, the smaller of two as near.
    - GRR: refused, since a report supports one item and tosses no coins.

    S is 1 for OUE, whose reports have honest sizes, and r(rate - q)/(p-q) for OLH, whose other items
    are honest. The gain is beta (r(rate - q)/(p-q) - f_T), or what the search finds of it.
    """

    name = "apa2"

    rate: float = field(default=0.5, kw_only=True)
    search: int = field(default=DEFAULT_SEARCH, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.rate, bool) or not isinstance(self.rate, int | float) or not 0 < self.rate < 1:
            raise ParameterError(
                f"rate, the probability to support a target, must be between 0 and 1, not {self.rate!r}"
            )
        check_search(self.search, exhaustive=False)

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        targets = self.target_indices(oracle.domain_size)
        included = np.zeros(oracle.domain_size)
        included[targets] = 1.0
        r = targets.size
        if isinstance(oracle, OUE):
            if r * self.rate > expected_size(oracle):
                raise ParameterError(
                    f"apa2 cannot hide {r * self.rate:g} targets in a report that supports as many items as an honest"
                    f" one, which is {oracle.honest_support_size:.3g} on average"
                )
            return Plan(
                send=lambda m, rng: self._rows(oracle, targets, m, rng),
                support=lambda m: wanted_support(included, r, *self._row_hits(oracle, r)),
            )
        if isinstance(oracle, OLH):
            return Plan(
                send=lambda m, rng: self._searched(oracle, targets, m, rng),
                support=lambda m: wanted_support(
                    included, r, self._bucket_hits(oracle, r), (included.size - r) * oracle.q
                ),
            )
        if oracle.protocol == "grr":
            raise ParameterError("apa2 tosses a coin for each target, and a grr report supports one item: use mga")
        raise unknown_protocol(oracle)

    def _rows(self, oracle: OUE, targets: Int64Array, m: int, rng: np.random.Generator) -> UInt8Array:
        sizes = draw_sizes(oracle, m, rng)
        hits = _possible(rng.binomial(targets.size, self.rate, size=m), sizes, targets.size, oracle.domain_size)

        def tossed_first(keys: FloatArray, users: Int64Array) -> None:
            own = keys[:, targets]
            rank = own.argsort(axis=1).argsort(axis=1)
            keys[:, targets] = np.where(rank < hits[users, None], own - 1.0, own + 1.0)

        return lowest_keys(oracle, sizes, rng, tossed_first)

    def _row_hits(self, oracle: OUE, r: int) -> tuple[float, float]:
        """Return the mean numbers of targets and of other items of an OUE report."""
        law, coins = support_size_law(oracle), binomial(r, self.rate)
        sizes, wishes = np.flatnonzero(law > _LIKELY), np.flatnonzero(coins > _LIKELY)
        hits = _possible(wishes[:, None], sizes, r, oracle.domain_size)
        mean = float(coins[wishes] @ hits @ law[sizes])
        return mean, float(law @ np.arange(law.size)) - mean

    def _searched(self, oracle: OLH, targets: Int64Array, m: int, rng: np.random.Generator) -> Reports:
        wishes = rng.binomial(targets.size, self.rate, size=m)
        buckets = rng.integers(oracle.hash_range, size=m, dtype=np.uint32)
        seeds = np.empty(m, dtype=np.uint32)
        for users, tried in tried_seeds(m, self.search, rng):
            wish, bucket = wishes[users, None], buckets[users, None]
            hits = np.zeros(tried.shape, dtype=np.int64)
            for target in targets.astype(np.uint32):
                hits += kernels.olh_buckets(tried, target, oracle.hash_range) == bucket
            best = (2 * np.abs(hits - wish) + (hits > wish)).argmin(axis=1)
            seeds[users] = tried[np.arange(len(wish)), best]
        return oracle.reports(seeds, buckets)

    def _bucket_hits(self, oracle: OLH, r: int) -> float:
        """Return the mean number of targets of an OLH report."""
        coins = binomial(r, self.rate)
        near = [hits_near(r, oracle.hash_range, self.search, wish) for wish in range(r + 1)]
        return float(coins @ near)


def _possible(hits: Int64Array, sizes: Int64Array, r: int, d: int) -> Int64Array:
    """Return the hits nearest to these that a report of this size can have of r targets."""
    return np.clip(hits, np.maximum(sizes - (d - r), 0), np.minimum(sizes, r))

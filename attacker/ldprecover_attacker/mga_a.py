"""The adaptive maximal gain attack."""

from dataclasses import dataclass, field

import numpy as np

from ldprecover import OLH, FrequencyOracle
from ldprecover.types import Int64Array, Reports
from ldprecover_attacker.base import Plan
from ldprecover_attacker.crafting import DEFAULT_SEARCH, check_search, craft, expected_hits, wanted_support
from ldprecover_attacker.seed_law import sized_law
from ldprecover_attacker.size_search import sized_seeds
from ldprecover_attacker.targets import SubsetAttack

__all__ = ["MGAA"]


@dataclass(frozen=True)
class MGAA(SubsetAttack):
    """MGA by subsets: each user promotes r' random targets of the r (Cao et al., 2021; MDPA, CCS 2025).

    Each user has a fresh random subset of `each` = r' targets (default: half of them), so that larger
    sets of targets are in no more reports than chance puts there:

    - GRR: one target of the subset, so the law of MGA;
    - OUE: the r' targets, and others, drawn from all other items, up to L = floor(p + (d-1)q) ones;
    - OLH: of `search` random seeds of the user's own, the seed and bucket with the greatest
      (targets of the subset in it) - |L' - (items in it)|, where L' = floor(d/g).

    An OUE report supports r' + (L - r')(r - r')/(d - r') targets on average. S is 1 for GRR,
    (max(L, r') - qd)/(p-q) for OUE; for OLH it is that of the buckets found, near
    (L' - d/g)/(p-q) when the search finds the size it aims at.
    """

    name = "mga-a"

    search: int = field(default=DEFAULT_SEARCH, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_search(self.search, exhaustive=False)

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        d = oracle.domain_size
        included, each = self.inclusion(d), self.subset_size(d)
        return Plan(
            send=lambda m, rng: self._craft(oracle, self.subsets(d, m, rng), rng),
            support=lambda m: wanted_support(included, each, *self._hits(oracle, each)),
        )

    def _craft(self, oracle: FrequencyOracle, wanted: Int64Array, rng: np.random.Generator) -> Reports:
        """Return a report for each user's subset of targets."""
        if not isinstance(oracle, OLH):
            return craft(oracle, wanted, rng)
        aims = np.full(len(wanted), oracle.domain_size // oracle.hash_range)
        return searched(oracle, wanted, aims, self.search, rng, exact=False)

    def _hits(self, oracle: FrequencyOracle, each: int) -> tuple[float, float]:
        """Return how many targets of its subset, and other items, a report supports on average."""
        if not isinstance(oracle, OLH):
            return expected_hits(oracle, each)
        d, g = oracle.domain_size, oracle.hash_range
        return sized_law(each, d, g, self.search, d // g, False)


def searched(
    oracle: OLH, wanted: Int64Array, aims: Int64Array, search: int, rng: np.random.Generator, *, exact: bool
) -> Reports:
    """Return the OLH reports that `sized_seeds` finds."""
    items = wanted.astype(np.uint32)
    return oracle.reports(*sized_seeds(items, aims, oracle.domain_size, oracle.hash_range, search, rng, exact=exact))

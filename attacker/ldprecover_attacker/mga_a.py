"""The adaptive maximal gain attack."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ldprecover import FrequencyOracle
from ldprecover.protocols import DEFAULT_SEARCH, Aim, crafter_of
from ldprecover.types import FloatArray, Rng
from ldprecover_attacker.arguments import check_search
from ldprecover_attacker.base import Plan, padded_sizes
from ldprecover_attacker.targets import SubsetAttack


@dataclass(frozen=True)
class MGAA(SubsetAttack):
    """MGA by subsets: each user promotes r' random targets of the r (Cao et al., 2021; MDPA, CCS
    2025).

    Each user has a fresh random subset of `each` = r' targets (default: half of them), so that
    larger sets of targets are in no more reports than chance puts there:

    - GRR: one target of the subset, so the law of MGA;
    - OUE: the r' targets, and others, drawn from all other items, up to L = floor(p + (d-1)q) ones;
    - OLH: of `search` random seeds of the user's own, the seed and bucket with the greatest
      (targets of the subset in it) - |L' - (items in it)|, where L' = floor(d/g).

    An OUE report supports r' + (L - r')(r - r')/(d - r') targets on average. S is 1 for GRR,
    (max(L, r') - qd)/(p-q) for OUE; for OLH it is that of the buckets found, near
    (L' - d/g)/(p-q) when the search finds the size it aims at.
    """

    name = "mga-a"
    _aim: ClassVar[Aim] = "balanced"

    _: KW_ONLY
    search: int = DEFAULT_SEARCH

    def __post_init__(self) -> None:
        super().__post_init__()
        check_search(self.search, exhaustive=False)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> Plan:
        d = oracle.domain_size
        included, each = self.inclusion(d), self.subset_size(d)
        return Plan(
            send=lambda m, rng: crafter_of(oracle).craft(
                self.subsets(d, m, rng), rng, aim=self._aim, search=self.search
            ),
            support=lambda m: crafter_of(oracle).crafted_support(
                included, each, aim=self._aim, search=self.search
            ),
            sizes=lambda: self._sizes(oracle, each),
        )

    def _sizes(self, oracle: FrequencyOracle, each: int) -> FloatArray | None:
        return padded_sizes(oracle, each)

"""Attacks whose users each promote some of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Self

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.crafting import DEFAULT_SEARCH, Aim, Strategy, crafter_of
from ldprecover.types import FloatArray, Int64Array, Rng
from ldprecover_attacker.arguments import check_search, check_size, size_or_default
from ldprecover_attacker.base import AttackPlan
from ldprecover_attacker.targeted import TargetedAttack, indicator


@dataclass(frozen=True)
class SubsetAttack(TargetedAttack):
    """A targeted attack whose users each promote a fresh random subset of `each` targets, r' in the
    literature.

    No set of more than r' targets is then in many reports, which is what frequent-itemset detection
    looks for. 1 to r; the default is half the targets, rounded up, and `resolve` writes the number
    down.

    Raises ParameterError for an `each` outside its range.
    """

    each: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.each, "each, a number of targets")

    def resolve(self, items: Sequence[str]) -> Self:
        resolved = super().resolve(items)
        return replace(resolved, each=resolved.subset_size(len(items)))

    def subset_size(self, d: int) -> int:
        """Return r'. Raises ParameterError for one above the number of targets."""
        r = self.target_indices(d).size
        return size_or_default(
            self.each, default=(r + 1) // 2, maximum=r, name="each, a number of targets"
        )

    def subsets(self, d: int, m: int, rng: Rng) -> Int64Array:
        """Return for each of m users its r' targets, an (m, r') array of uniformly random
        subsets.
        """
        targets, each = self.target_indices(d), self.subset_size(d)
        order = rng.random((m, targets.size)).argsort(axis=1)
        return targets[order[:, :each]]

    def inclusion(self, d: int) -> FloatArray:
        """Return for each of d items the probability r'/r, or 0, that a user promotes it."""
        targets = self.target_indices(d)
        return indicator(targets, d) * (self.subset_size(d) / targets.size)


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

        MGAA([3, 40, 41, 42], each=2).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "mga-a"
    _aim: ClassVar[Aim] = "balanced"

    _: KW_ONLY
    search: int = DEFAULT_SEARCH

    def __post_init__(self) -> None:
        super().__post_init__()
        check_search(self.search, exhaustive=False)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        d = oracle.domain_size
        included, each = self.inclusion(d), self.subset_size(d)
        strategy = Strategy(self._aim, self.search)
        return AttackPlan(
            send=lambda m, rng: crafter_of(oracle).craft(self.subsets(d, m, rng), rng, strategy),
            support=lambda m: crafter_of(oracle).crafted_support(included, each, strategy),
        )


@dataclass(frozen=True)
class APA(MGAA):
    """MGA-A whose reports support as many items as honest ones do, one by one (MDPA, CCS 2025).

    Each user draws a size k from the law of an honest report, Bernoulli(p) + Binomial(d-1, q), and
    promotes a fresh random subset of `each` = r' targets:

    - GRR: every report supports one item, so this is MGA;
    - OUE: the r' targets and k - r' random others; k of the r' where k is smaller;
    - OLH: of `search` random seeds of the user's own, the seed and bucket of size nearest to k (as
      a rule there are many of size k), among these the one that holds most targets of the subset.

    S is that of honest reports, 1: exactly for GRR and OUE, and for OLH as far as the search finds
    every size. The gain is about MGA-A's.

    Raises ParameterError when r' is more than an honest report supports on average.

        APA([3, 40, 41, 42], each=2).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "apa"
    _aim = "honest"

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        each, maximum = self.subset_size(oracle.domain_size), crafter_of(oracle).expected_size
        if each > maximum and oracle.fixed_size != 1:
            if maximum < 1:
                raise ParameterError(
                    f"apa can hide no target: of the {oracle.domain_size} items an honest report "
                    f"supports {oracle.laws.mean_size:.3g} on average, less than one"
                )
            raise ParameterError(
                f"apa cannot hide {each} targets in a report that supports as many items as an "
                "honest one, which is"
                f" {oracle.laws.mean_size:.3g} on average: each must be at most {maximum}"
            )
        return super().plan(oracle, rng)

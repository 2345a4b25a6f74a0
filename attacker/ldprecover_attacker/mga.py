"""The maximal gain attack."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover._types import FloatArray, Int64Array, Reports
from ldprecover_attacker.base import ItemAttack
from ldprecover_attacker.crafting import DEFAULT_SEARCH, check_search, craft

__all__ = ["MGA"]


@dataclass(frozen=True)
class MGA(ItemAttack):
    """Raises the estimates of r target items as far as reports can (Cao et al., USENIX Security 2021).

    Sampled (paper, VI-A): P is 1/r on each target. Crafted (Cao et al.): every report supports as many
    targets as one report of its protocol can, and about as many items as an honest report does:

    - GRR: one target, drawn uniformly (the same law as sampled);
    - OUE: all r targets, and other items drawn afresh for each report up to L = floor(p + (d-1)q) ones;
    - OLH: the best of `search` random seeds of each user's own, and the bucket that holds most targets;
      search="exhaustive" scans the seeds of the hash until every user has a perfect one
      (`ldprecover_attacker.seed_search` says what that costs).

    Expected overall gain, sum over the targets of E[f~ after - f~ before] = beta (sum_t f~_Y(t) - f_T),
    where sum_t f~_Y(t) = (h - rq)/(p-q) and h is the mean number of targets a report supports.

    `targets` are item indices, or labels until `resolve` has turned them into indices; repeats
    merge. Raises ParameterError for no target, one that is neither, or one outside the domain.
    """

    name = "mga"

    targets: Sequence[int | str]
    search: int | Literal["exhaustive"] = field(default=DEFAULT_SEARCH, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.targets, str):
            raise ParameterError("targets must be a sequence of item indices or labels, not one string")
        targets = tuple(dict.fromkeys(_index_or_label(target) for target in self.targets))
        if not targets:
            raise ParameterError("targets must name at least one item")
        object.__setattr__(self, "targets", targets)
        check_search(self.search)

    def resolve(self, items: Sequence[str]) -> Self:
        index = {label: i for i, label in enumerate(items)}
        unknown = [target for target in self.targets if isinstance(target, str) and target not in index]
        if unknown:
            raise ParameterError(f"target {unknown[0]!r} is no item of the round")
        resolved = replace(self, targets=[index[t] if isinstance(t, str) else t for t in self.targets])
        resolved._indices(len(items))
        return resolved

    def distribution(self, d: int, rng: np.random.Generator) -> FloatArray:
        targets = self._indices(d)
        weights = np.zeros(d)
        weights[targets] = 1 / targets.size
        return weights

    def _crafted(self, oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Reports:
        targets = self._indices(oracle.domain_size)
        return craft(oracle, np.broadcast_to(targets, (m, targets.size)), rng, self.search)

    def _indices(self, d: int) -> Int64Array:
        for target in self.targets:
            if isinstance(target, str):
                raise ParameterError(f"target {target!r} is a label; resolve the attack with the round's items first")
            if target >= d:
                raise ParameterError(f"targets must be from 0 to {d - 1}, not {target}")
        return np.array(self.targets, dtype=np.int64)


def _index_or_label(target: object) -> int | str:
    if isinstance(target, str) and target:
        return target
    if isinstance(target, int | np.integer) and not isinstance(target, bool) and target >= 0:
        return int(target)
    raise ParameterError(f"a target must be an item index from 0 or a non-empty label, not {target!r}")

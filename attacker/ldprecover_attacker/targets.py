"""Attacks that raise chosen items."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ldprecover import ParameterError
from ldprecover.items import find_items
from ldprecover.types import FloatArray, Int64Array, Rng
from ldprecover_attacker.arguments import check_size, is_integer, size_or_default
from ldprecover_attacker.base import ItemAttack


@dataclass(frozen=True)
class TargetedAttack(ItemAttack):
    """An attack on r target items. P is uniform on them.

    `targets` are item indices, or labels until `resolve` has turned them into indices; repeats
    merge. Raises ParameterError for no target, one that is neither, or one outside the domain.
    """

    targets: Sequence[int | str]

    def __post_init__(self) -> None:
        if isinstance(self.targets, str):
            raise ParameterError(
                "targets must be a sequence of item indices or labels, not one string"
            )
        targets = tuple(dict.fromkeys(index_or_label(target) for target in self.targets))
        if not targets:
            raise ParameterError("targets must name at least one item")
        object.__setattr__(self, "targets", targets)

    def resolve(self, items: Sequence[str]) -> Self:
        resolved = replace(self, targets=find_items(self.targets, items))
        resolved.target_indices(len(items))
        return resolved

    def target_indices(self, d: int) -> Int64Array:
        return np.array([check_index(target, d) for target in self.targets], dtype=np.int64)

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        targets = self.target_indices(d)
        return _indicator(targets, d) / targets.size


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
        return _indicator(targets, d) * (self.subset_size(d) / targets.size)


def index_or_label(target: object) -> int | str:
    """Return the item as it was named. Raises ParameterError when it is neither an index nor a
    label.
    """
    if isinstance(target, str) and target:
        return target
    if is_integer(target) and target >= 0:
        return int(target)
    raise ParameterError(
        f"a target must be an item index from 0 or a non-empty label, not {target!r}"
    )


def check_index(target: int | str, d: int) -> int:
    """Return the index. Raises ParameterError for a label, and for an index outside d items."""
    if isinstance(target, str):
        raise ParameterError(
            f"target {target!r} is a label; resolve the attack with the round's items first"
        )
    if target >= d:
        raise ParameterError(f"targets must be from 0 to {d - 1}, not {target}")
    return target


def _indicator(items: Int64Array, d: int) -> FloatArray:
    weights = np.zeros(d)
    weights[items] = 1.0
    return weights

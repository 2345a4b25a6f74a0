"""The maximal loss attack."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover.items import find_items
from ldprecover.types import FloatArray, Int64Array, Reports, UInt32Array
from ldprecover_attacker.base import ItemAttack, Plan
from ldprecover_attacker.crafting import DEFAULT_SEARCH, check_search, unknown_protocol
from ldprecover_attacker.seed_search import SEEDS
from ldprecover_attacker.targets import check_index, index_or_label

__all__ = ["AGAINST", "MLA"]

AGAINST = ("projected", "raw")

_CELLS = 1 << 18  # (seed, item) pairs and (seed, bucket) pairs held at once


@dataclass(frozen=True)
class MLA(ItemAttack):
    """Makes the squared error of all estimates as large as reports can: all users send one and the same report.

    The expected loss sum_v (E f~_Z(v) - f(v))^2 = beta^2 sum_v ((pi(v) - q)/(p-q) - f(v))^2 is convex in
    pi, so a single report is best; derived here, after the aim that LDP-Purifier (DASFAA 2024) names.
    `against` says what the server does with its estimates, which decides the report:

    - "raw", they are used as they are: one that supports as many items as possible;
    - "projected", the default: they are shifted to sum to one, which erases what all items have in
      common, so one that supports half of the items, a secret random half.

    - GRR: one item, `item` (index or label), a secret random one unless given; the least frequent item
      loses most. MSE beta^2 [(1-q)^2 + (d-1)q^2]/(d(p-q)^2) and less than that from f; S = 1.
    - OUE: all ones, or floor(d/2) of them; S = d(1-q)/(p-q), or (floor(d/2) - qd)/(p-q).
    - OLH: one seed, the best of `search` random ones, and its fullest bucket, or the bucket of nearest
      to d/2 items. S = (k - d/g)/(p-q) if the bucket holds k.

    `support` is 0 or 1 for each item, by the report that was drawn.

    Raises ParameterError for an unknown `against`, and an item outside the domain.
    """

    name = "mla"

    item: int | str | None = None
    against: str = field(default="projected", kw_only=True)
    search: int = field(default=DEFAULT_SEARCH, kw_only=True)

    def __post_init__(self) -> None:
        if self.item is not None:
            object.__setattr__(self, "item", index_or_label(self.item))
        if self.against not in AGAINST:
            raise ParameterError(f"against must be one of {', '.join(AGAINST)}, not {self.against!r}")
        check_search(self.search, exhaustive=False)

    def resolve(self, items: Sequence[str]) -> Self:
        if self.item is None:
            return self
        (item,) = find_items([self.item], items)
        return replace(self, item=check_index(item, len(items)))

    def distribution(self, d: int, rng: np.random.Generator) -> FloatArray:
        weights = np.zeros(d)
        weights[rng.integers(d) if self.item is None else check_index(self.item, d)] = 1.0
        return weights

    def plan(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Plan:
        report = self._report(oracle, rng)
        return Plan(
            send=lambda m, rng: np.repeat(report, m, axis=0),
            support=lambda m: oracle.supports(report)[0].astype(np.float64),
        )

    def _report(self, oracle: FrequencyOracle, rng: np.random.Generator) -> Reports:
        """Return the one report that everyone sends, a row of its own."""
        d = oracle.domain_size
        if isinstance(oracle, GRR):
            return oracle.encode(np.flatnonzero(self.distribution(d, rng)))
        if isinstance(oracle, OUE):
            bits = np.zeros((1, d), dtype=np.uint8)
            bits[0, rng.permutation(d)[: d if self.against == "raw" else d // 2]] = 1
            return np.packbits(bits, axis=1, bitorder="little")
        if isinstance(oracle, OLH):
            return self._searched(oracle, rng)
        raise unknown_protocol(oracle)

    def _searched(self, oracle: OLH, rng: np.random.Generator) -> Reports:
        d, g = oracle.domain_size, oracle.hash_range
        seeds = rng.integers(0, SEEDS, size=self.search, dtype=np.uint32)
        aim = d if self.against == "raw" else d / 2
        found = []
        step = max(1, _CELLS // max(d, g))
        for start in range(0, seeds.size, step):
            block = seeds[start : start + step]
            sizes = _bucket_sizes(oracle, block)
            miss = np.abs(sizes - aim)
            row, bucket = np.unravel_index(miss.argmin(), miss.shape)
            found.append((miss[row, bucket], block[row], bucket))
        _, seed, bucket = min(found, key=lambda best: best[0])
        return oracle.reports(np.array([seed]), np.array([bucket]))


def _bucket_sizes(oracle: OLH, seeds: UInt32Array) -> Int64Array:
    """Return how many of the d items each seed hashes to each bucket, (seeds, g)."""
    g = oracle.hash_range
    cells = oracle.buckets(seeds[:, None], np.arange(oracle.domain_size)) + np.arange(len(seeds))[:, None] * g
    return np.bincount(cells.ravel(), minlength=len(seeds) * g).reshape(len(seeds), g)

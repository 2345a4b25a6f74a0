"""The maximal loss attack."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.items import find_items
from ldprecover.protocols import DEFAULT_SEARCH, crafter_of
from ldprecover.types import FloatArray, Reports, Rng
from ldprecover_attacker.arguments import check_search
from ldprecover_attacker.base import ItemAttack, Plan, exact_size
from ldprecover_attacker.targets import check_index, index_or_label

AGAINST = ("projected", "raw")


@dataclass(frozen=True)
class MLA(ItemAttack):
    """Makes the squared error of all estimates as large as reports can: all users send one and the
    same report.

    The expected loss sum_v (E f~_Z(v) - f(v))^2 = beta^2 sum_v ((pi(v) - q)/(p-q) - f(v))^2 is
    convex in pi, so a single report is best; derived here, after the aim that LDP-Purifier (DASFAA
    2024) names. `against` says what the server does with its estimates, which decides the report:

    - "raw", they are used as they are: one that supports as many items as possible;
    - "projected", the default: they are shifted to sum to one, which erases what all items have in
      common, so one that supports half of the items, a secret random half.

    - GRR: one item, `item` (index or label), a secret random one unless given; the least frequent
      item loses most. MSE beta^2 [(1-q)^2 + (d-1)q^2]/(d(p-q)^2) and less than that from f; S = 1.
    - OUE: all ones, or floor(d/2) of them; S = d(1-q)/(p-q), or (floor(d/2) - qd)/(p-q).
    - OLH: one seed, the best of `search` random ones, and its fullest bucket, or the bucket of
      nearest to d/2 items. S = (k - d/g)/(p-q) if the bucket holds k.

    Where seeds are given, users cannot send one and the same report: each takes the bucket of its
    seed that holds most items, or most of a secret random half.

    `support` is 0 or 1 for each item, by the report that was drawn, but for given seeds.

    Raises ParameterError for an unknown `against`, and an item outside the domain.
    """

    name = "mla"

    item: int | str | None = None
    _: KW_ONLY
    against: str = "projected"
    search: int = DEFAULT_SEARCH

    def __post_init__(self) -> None:
        if self.item is not None:
            object.__setattr__(self, "item", index_or_label(self.item))
        if self.against not in AGAINST:
            raise ParameterError(
                f"against must be one of {', '.join(AGAINST)}, not {self.against!r}"
            )
        check_search(self.search, exhaustive=False)

    def resolve(self, items: Sequence[str]) -> Self:
        if self.item is None:
            return self
        (item,) = find_items([self.item], items)
        return replace(self, item=check_index(item, len(items)))

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        weights = np.zeros(d)
        weights[rng.integers(d) if self.item is None else check_index(self.item, d)] = 1.0
        return weights

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> Plan:
        if oracle.listed_seeds is not None:
            return self._plan_of_given_seeds(oracle, rng)
        report = self._report(oracle, rng)
        support = oracle.supports(report)[0].astype(np.float64)
        return Plan(
            send=lambda m, rng: np.repeat(report, m, axis=0),
            support=lambda m: support,
            sizes=lambda: exact_size(support.size, int(support.sum())),
        )

    def _plan_of_given_seeds(self, oracle: FrequencyOracle, rng: Rng) -> Plan:
        """Return the plan of users with given seeds, who each take their fullest bucket."""
        d = oracle.domain_size
        items = (
            np.arange(d)
            if self.against == "raw"
            else np.sort(rng.choice(d, size=d // 2, replace=False))
        )
        included = np.zeros(d)
        included[items] = 1.0
        return Plan(
            send=lambda m, rng: crafter_of(oracle).craft(
                np.broadcast_to(items, (m, items.size)), rng
            ),
            support=lambda m: crafter_of(oracle).crafted_support(included, items.size),
        )

    def _report(self, oracle: FrequencyOracle, rng: Rng) -> Reports:
        """Return the report that all users send, as an array of one row."""
        d = oracle.domain_size
        if oracle.fixed_size == 1:
            return oracle.encode(np.flatnonzero(self.distribution(d, rng)), rng)
        return crafter_of(oracle).report_of_size(
            d if self.against == "raw" else d / 2, rng, search=self.search
        )

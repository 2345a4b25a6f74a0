"""Attacks that distort all estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover.crafting import DEFAULT_SEARCH, crafter_of
from ldprecover.items import find_items
from ldprecover.types import FloatArray, Reports, Rng
from ldprecover_attacker.arguments import check_against, check_search, check_size, size_or_default
from ldprecover_attacker.base import AttackPlan, ItemAttack, ModelledAttack
from ldprecover_attacker.targeted import check_index, index_or_label

_KINDS = ("diffuse", "peaked")
_PEAKED_SIZE = 10


@dataclass(frozen=True)
class AA(ModelledAttack):
    """Sends items drawn from a random attacker-designed distribution P (paper, V-C and VI-A).

    The paper only says that P is randomly generated. Two ways:

    - "diffuse": P proportional to independent weights from U(0, 1) on all d items;
    - "peaked": such weights on `size` random items (1 to d, default 10), zero elsewhere. The MSE of
      8.78e-2 that the paper prints for poisoned GRR frequencies (VI-D) needs such a P: it is
      beta^2/(p-q)^2 (sum P^2 - 1/d)/d, so sum P^2 = 0.15, where a diffuse P has about
      4/(3d) = 0.013.

    Crafted, a report is made for the one item its user drew. For GRR and OLH that is the sampled
    report; an OUE report gets the ones of an honest report's size in place of a single one.

    S is that of MGA for sampled reports; crafted, 1 for GRR, (L - qd)/(p-q) for OUE with
    L = floor(p + (d-1)q), and (1-q)/(p-q) for OLH. The gain on any items is beta(sum_T
    (pi(t) - q)/(p-q) - f_T), with pi = P under GRR and sampled OUE, P + (1-P)q under OLH and
    P + (1-P)(L-1)/(d-1) under crafted OUE.

    Raises ParameterError for another kind, a size outside its range, or a size with "diffuse".

        AA("peaked", size=10).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "aa"

    kind: str = "diffuse"
    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in _KINDS:
            raise ParameterError(f"kind must be one of {', '.join(_KINDS)}, not {self.kind!r}")
        if self.kind == "diffuse" and self.size is not None:
            raise ParameterError("size belongs to the peaked kind; diffuse weights all items")
        check_size(self.size)

    def resolve(self, items: Sequence[str]) -> Self:
        return self if self.kind == "diffuse" else replace(self, size=self._size(len(items)))

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        weights = np.zeros(d)
        if self.kind == "diffuse":
            weights[:] = _positive_uniform(d, rng)
        else:
            chosen = rng.choice(d, size=self._size(d), replace=False)
            weights[chosen] = _positive_uniform(chosen.size, rng)
        weights /= weights.sum()
        return weights

    def _size(self, d: int) -> int:
        return size_or_default(self.size, default=_PEAKED_SIZE, maximum=d)


def _positive_uniform(n: int, rng: Rng) -> FloatArray:
    """Return n weights from (0, 1]: `random` is from [0, 1), and weights that are all zero have no
    sum.
    """
    return 1.0 - rng.random(n)


@dataclass(frozen=True)
class Manip(ModelledAttack):
    """Distorts all frequencies: users share a secret random set H of items (Cheu et al., IEEE S&P
    2021; paper, VI-A).

    P is uniform on H. `size` is |H|, 1 to d. The paper does not say how large H is; the default is
    ceil(d/2), half the items, and `resolve` writes the number down.

    Crafted, a report is made for the one item its user drew. For GRR and OLH that is the sampled
    report; an OUE report gets the ones of an honest report's size in place of a single one.

    S and gain as for `AA`, with its own P.

    Raises ParameterError for a size outside its range.

        Manip(size=20).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "manip"

    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.size)

    def resolve(self, items: Sequence[str]) -> Self:
        return replace(self, size=self._size(len(items)))

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        size = self._size(d)
        weights = np.zeros(d)
        weights[rng.choice(d, size=size, replace=False)] = 1 / size
        return weights

    def _size(self, d: int) -> int:
        return size_or_default(self.size, default=(d + 1) // 2, maximum=d)


@dataclass(frozen=True)
class RPA(ItemAttack):
    """Sends reports drawn uniformly from all that can be sent (Cao et al., USENIX Security 2021).

    - GRR: a random item. pi = 1/d, S = 1.
    - OUE: each bit a fair coin. pi = 1/2, S = d(1/2 - q)/(p-q) = d: a shift common to all items.
    - OLH: a random seed and bucket. pi = q = 1/g, S = 0: as if nobody had reported.

    Lying about a random item and then following the protocol is InputPoisoning(RPA()).

        RPA().reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "rpa"

    def distribution(self, d: int, rng: Rng) -> FloatArray:
        return np.full(d, 1 / d)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        return AttackPlan(
            send=crafter_of(oracle).uniform_reports,
            support=lambda m: np.full(oracle.domain_size, crafter_of(oracle).uniform_support),
        )


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

    `support` is 0 or 1 for each item, by the report that was drawn.

    Raises ParameterError for an unknown `against`, and an item outside the domain.

        MLA(against="raw").reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "mla"

    item: int | str | None = None
    _: KW_ONLY
    against: str = "projected"
    search: int = DEFAULT_SEARCH

    def __post_init__(self) -> None:
        if self.item is not None:
            object.__setattr__(self, "item", index_or_label(self.item))
        check_against(self.against)
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

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        report = self._report(oracle, rng)
        support = oracle.supports(report)[0].astype(np.float64)
        return AttackPlan(
            send=lambda m, rng: np.repeat(report, m, axis=0),
            support=lambda m: support,
        )

    def _report(self, oracle: FrequencyOracle, rng: Rng) -> Reports:
        """Return the report that all users send, as an array of one row."""
        d = oracle.domain_size
        if oracle.fixed_size == 1:
            return oracle.encode(np.flatnonzero(self.distribution(d, rng)), rng)
        return crafter_of(oracle).report_of_size(
            d if self.against == "raw" else d / 2, rng, self.search
        )

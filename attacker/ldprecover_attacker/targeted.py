"""Attacks that raise chosen items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, Self

import numpy as np

from ldprecover import FrequencyOracle, ParameterError
from ldprecover._checks import real
from ldprecover.crafting import DEFAULT_SEARCH, Strategy, crafter_of
from ldprecover.distributions import binomial_law
from ldprecover.items import find_items, isolated, quoted, whole
from ldprecover.types import FloatArray, Int64Array, Rng
from ldprecover_attacker.arguments import check_against, check_search
from ldprecover_attacker.base import (
    AttackPlan,
    ItemAttack,
    ModelledAttack,
    honest_plan,
)


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
        return indicator(targets, d) / targets.size


def index_or_label(target: object) -> int | str:
    """Return the item as it was named. Raises ParameterError when it is neither an index nor a
    label.
    """
    if isinstance(target, str) and target:
        return target
    if (index := whole(target)) is not None and index >= 0:
        return index
    raise ParameterError(
        f"a target must be an item index from 0 or a non-empty label, not {target!r}"
    )


def check_index(target: int | str, d: int) -> int:
    """Return the index. Raises ParameterError for a label, and for an index outside d items."""
    if isinstance(target, str):
        raise ParameterError(
            f"target {quoted(target)} is a label; resolve the attack with the round's items first"
        )
    if target >= d:
        raise ParameterError(f"targets must be from 0 to {d - 1}, not {target}")
    return target


def indicator(items: Int64Array, d: int) -> FloatArray:
    """Return the vector of d numbers that is 1 at these items and 0 elsewhere."""
    weights = np.zeros(d)
    weights[items] = 1.0
    return weights


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
      (`ldprecover.crafting.seed_search` says what that costs);
    - LLH: the reports, but of seed 0, that support most targets.
    - HR: columns that support most targets. Few columns raise the same other items, which a
      projection shares the gain with: against="projected" spreads reports over an eighth of all
      columns, for a smaller gain before the projection.

    S is 1 for GRR, (max(L, r) - qd)/(p-q) for crafted OUE, (h - rq)/(p-q) for crafted OLH, where h
    is the mean number of targets a report supports; sampled, (1 - qd)/(p-q) for OUE and (1-q)/(p-q)
    for OLH. The gain is beta ((h - rq)/(p-q) - f_T).

        MGA([3, 40], search=100).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "mga"

    _: KW_ONLY
    search: int | Literal["exhaustive"] = DEFAULT_SEARCH
    against: str = "raw"

    def __post_init__(self) -> None:
        TargetedAttack.__post_init__(self)
        ModelledAttack.__post_init__(self)
        check_search(self.search)
        check_against(self.against)

    def _crafted(self, oracle: FrequencyOracle, weights: FloatArray) -> AttackPlan:
        targets = self.target_indices(oracle.domain_size)
        r = targets.size
        strategy = Strategy("most" if self.against == "raw" else "projected", self.search)
        return AttackPlan(
            send=lambda m, rng: crafter_of(oracle).craft(
                np.broadcast_to(targets, (m, r)), rng, strategy
            ),
            support=lambda m: crafter_of(oracle).crafted_support(weights * r, r, strategy, m),
        )


@dataclass(frozen=True)
class APA2(TargetedAttack):
    """Supports each target by the toss of a separate coin, in otherwise honest reports.

    No two targets are then supported together more often than two independent items of that rate,
    and no report stands out by its size. `rate` is the probability of a coin, above 0 and below 1;
    the fair coin of the default pays because honest reports support an item they do not hold with
    q < 1/2.

    - OUE: k ones, drawn as an honest report's number of them; h of the r targets, drawn from
      Binomial(r, rate) (as near to it as k ones and d - r others allow); k - h random others.
    - OLH: of `search` random seeds of the user's own, and a random bucket, the seed that hashes the
      number of targets nearest to such an h to the bucket, the smaller of two as near.
    - GRR: ParameterError, since a report supports one item and tosses no coins.

    S is 1 for OUE, whose reports have honest sizes, and r(rate - q)/(p-q) for OLH, whose other
    items are honest. The gain is beta (r(rate - q)/(p-q) - f_T), or what the search finds of it.

        APA2([3, 40], rate=0.4).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "apa2"

    _: KW_ONLY
    rate: float = 0.5
    search: int = DEFAULT_SEARCH

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < (real(self.rate) or 0) < 1:
            raise ParameterError(
                "rate, the probability to support a target, must be between 0 and 1, not "
                f"{self.rate!r}"
            )
        check_search(self.search, exhaustive=False)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        if oracle.fixed_size == 1:
            raise ParameterError(
                f"apa2 tosses a coin for each target, and a {oracle.protocol} report supports one "
                "item: use mga"
            )
        targets = self.target_indices(oracle.domain_size)
        if targets.size * self.rate > crafter_of(oracle).coin_capacity:
            raise ParameterError(
                f"apa2 cannot hide {targets.size * self.rate:g} targets in a report that supports "
                "as many items as an"
                f" honest one, which is {oracle.laws.mean_size:.3g} on average"
            )
        law = binomial_law(targets.size, self.rate)
        return AttackPlan(*crafter_of(oracle).hit_reports(targets, law, self.search))


@dataclass(frozen=True)
class Joint(TargetedAttack):
    """Supports all targets together or none of them, in reports of honest sizes.

    `rate` is the probability of all; without it the protocol's q, and the counts of the targets do
    not move, but pairs of them go together, as if malicious reports shared them: this frames
    popular items. `item` is one more item, an index or a label, that every report supports.

    - OUE, SUE, SS: as many ones as an honest report; reports with room for all targets have them.
    - OLH: a scanned seed that hashes all targets to one bucket, or a random seed and bucket without
      a target. ParameterError where fewer than 524,288 seeds of the hash do.
    - GRR: a target with probability `rate`, another item else; `item` alone, if there is one.
    - HR and LLH: ParameterError.

    The gain is beta (r(rate - q)/(p-q) - f_T), but for GRR.

        Joint([3, 40], rate=0.5).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "joint"

    _: KW_ONLY
    rate: float | None = None
    item: int | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        rate = 0.0 if self.rate is None else real(self.rate)
        if rate is None or not 0 <= rate <= 1:
            raise ParameterError(
                "rate, the probability to support all targets, must be from 0 to 1, not "
                f"{self.rate!r}"
            )
        if self.item is not None:
            object.__setattr__(self, "item", index_or_label(self.item))
            if self.item in self.targets:
                raise ParameterError(
                    f"item must not be a target, and {isolated(repr(self.item))} is one"
                )

    def resolve(self, items: Sequence[str]) -> Self:
        item = None if self.item is None else find_items([self.item], items)[0]
        return replace(super().resolve(items), item=item)

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        d = oracle.domain_size
        reports = crafter_of(oracle).joint_reports(
            self.target_indices(d),
            oracle.q if self.rate is None else self.rate,
            None if self.item is None else check_index(self.item, d),
        )
        return AttackPlan(*reports)


@dataclass(frozen=True)
class RIA(TargetedAttack):
    """Claims a random target and follows the protocol (Cao et al., USENIX Security 2021).

    The law of InputPoisoning(MGA(targets)): S = 1 and the gain is beta(1 - f_T), for every
    protocol.

        RIA([3, 40]).reports(oracle, m=1000, rng=np.random.default_rng(0))
    """

    name = "ria"

    def plan(self, oracle: FrequencyOracle, rng: Rng) -> AttackPlan:
        return honest_plan(oracle, self.distribution(oracle.domain_size, rng))

"""Unbiased frequencies from the reports that pass the filters, by the laws of honest ones."""

import math
from dataclasses import dataclass

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.estimates import NoisyEstimates, noise_sd
from ldprecover.recovery.unmixing.filters.rules import (
    DroppedSet,
    next_item_probabilities,
    other_items_laws,
    set_laws,
)
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True)
class SetLaw:
    """Probabilities of an honest report, if reports are dropped by their number of items of a set.

    `none` is r0, that a report passes if its user holds no item of the set, `holder` is r1, the
    same for a user of one of its items. Three are the probabilities that a report passes and
    supports a given item of the set: `item` is A1, for the item's own user; `other` is A2, for the
    user of another item of the set; `outsider` is A0, for the user of none. The last are those that
    a report which passes supports a given item outside: `outside_own` is B1, for the item's own
    user; `outside_none` is B0, for the user of another item outside; `outside_holder` is B2, for
    the user of an item of the set. If items are independent, B1 is p, and B0 and B2 are q.
    """

    none: float
    holder: float
    item: float
    other: float
    outsider: float
    outside_own: float
    outside_none: float
    outside_holder: float

    @classmethod
    def of(cls, dropped: DroppedSet, oracle: FrequencyOracle) -> "SetLaw":
        """Return the probabilities for a set whose reports in some bins are dropped."""
        passing, t, p = ~dropped.bins, dropped.items.size, oracle.p
        laws = set_laws(oracle, t)
        none, holder = (float(each) for each in laws @ passing)
        # Laws of the items beside the user's, if the report supports that one, or does not; and how
        # often it supports one item more, given these.
        all_own, all_without = other_items_laws(oracle, t)
        own, without = other_items_laws(oracle, t - 1)
        more_all_own, more_all_without = next_item_probabilities(oracle, t)
        more_own, more_without = next_item_probabilities(oracle, t - 1)
        # Of a user of one item of the set, each of the other t - 1 is supported equally often.
        others = np.arange(t) / (t - 1)
        outside_none = p * all_own * more_all_own + (1 - p) * all_without * more_all_without
        outside_holder = p * (own * more_own) @ passing[1:]
        outside_holder += (1 - p) * (without * more_without) @ passing[:-1]
        return cls(
            none=none,
            holder=holder,
            item=float(p * own @ passing[1:]),
            other=float(
                p * (own * others) @ passing[1:] + (1 - p) * (without * others) @ passing[:-1]
            ),
            outsider=float((laws[0] * np.arange(t + 1) / t) @ passing),
            outside_own=float(p * all_own @ passing) / none,
            outside_none=float(outside_none @ passing) / none,
            outside_holder=float(outside_holder) / holder,
        )

    @property
    def ratio(self) -> float:
        """rho = r1/r0."""
        return self.holder / self.none


def passing_rates(oracle: FrequencyOracle, sizes: BoolArray) -> tuple[float, float]:
    """Return p and q of honest reports of the sizes k where `sizes[k]` is set."""
    law = oracle.laws.size_law().probabilities()
    k = np.arange(sizes.size)
    # The sizes of reports that support their user's item.
    own = np.append(0.0, other_items_laws(oracle, oracle.domain_size - 1)[0])
    share = law[sizes].sum()
    p = float(oracle.p * own[sizes].sum() / share)
    q = (float(k[sizes] @ law[sizes] / share) - p) / (oracle.domain_size - 1)
    return p, q


def unbiased(
    oracle: FrequencyOracle,
    counts: Int64Array,
    n: int,
    sizes: BoolArray,
    sets: tuple[DroppedSet, ...],
) -> tuple[NoisyEstimates, bool]:
    """Return unbiased estimates from the support counts of the n reports that pass, and whether
    they are trusted.

    They are not if too many users hold items of the sets for the sets to be an attacker's.
    `sizes` are the sizes that pass, `sets` are disjoint sets of items with dropped bins. The share
    of users of a set is estimated and clipped into [0, 1]; near 0 the clipping raises its items by
    up to a third of a standard deviation and lowers their squared error. If the items of a report
    are not independent, there is at most one set. An item of which too
    little is left is not estimated: it is 1/d, with a large standard deviation.
    """
    p, q = passing_rates(oracle, sizes)
    rates = counts / n
    z = (rates - q) / (p - q)
    c0 = float(np.median(rates))
    shares = [SetLaw.of(dropped, oracle) for dropped in sets]
    masses = _masses(rates, sets, shares)
    trusted = bool((masses <= THRESHOLDS.set_mass).all() and masses.sum() <= 1)
    masses = np.clip(masses, 0, 1)
    # u: the share of honest reports that passes, over that of users who hold no item of a set.
    u = 1 + sum(float(mass) * (share.ratio - 1) for mass, share in zip(masses, shares, strict=True))
    if sets:
        # c_v u = f_v (B1 - B0) + B0 + sum over the sets of F (rho B2 - B0)
        of_none = shares[0].outside_none * (q / oracle.q)
        gap = shares[0].outside_own * (p / oracle.p) - of_none
        base = of_none
        for mass, share in zip(masses.tolist(), shares, strict=True):
            base += mass * (share.ratio * share.outside_holder * (q / oracle.q) - of_none)
        z = (rates * u - base) / gap
        p, q = of_none + gap, of_none
    sd = noise_sd(z, n, p, q, c0) * u
    usual = float(np.median(sd))
    for mass, share, dropped in zip(masses.tolist(), shares, sets, strict=True):
        items, gap = dropped.items, share.item - share.other
        if gap <= THRESHOLDS.least_gap * (oracle.p - oracle.q):
            z[items], sd[items] = 1 / oracle.domain_size, THRESHOLDS.unknown_deviation * usual
            continue
        # c_v r0 u = f_v (A1 - A2) + F A2 + A0 (u - F rho)
        z[items] = (
            rates[items] * share.none * u
            - mass * share.other
            - share.outsider * (u - mass * share.ratio)
        ) / gap
        c = max(float(np.median(rates[items])), THRESHOLDS.least_rate * share.outsider / share.none)
        sd[items] = np.sqrt(c * (1 - c) / n) * share.none * u / gap
    law = oracle.laws.size_law().probabilities()
    honest_kept = float(law[sizes].sum()) * math.prod(share.none for share in shares) * u
    return NoisyEstimates(z, sd, n, honest_kept=honest_kept), trusted


def _masses(rates: FloatArray, sets: tuple[DroppedSet, ...], shares: list[SetLaw]) -> FloatArray:
    """Return F, the share of genuine users that holds an item of each set.

    It solves the sums, over the items of each set, of the equations in `unbiased`.
    """
    if not sets:
        return np.empty(0)
    together = np.array([rates[dropped.items].sum() for dropped in sets])
    t = np.array([dropped.items.size for dropped in sets])
    none = np.array([share.none for share in shares])
    rho = np.array([share.ratio for share in shares])
    a1, a2, a0 = (
        np.array([getattr(share, name) for share in shares])
        for name in ("item", "other", "outsider")
    )
    surplus = together * none - t * a0
    equations = np.outer(surplus, rho - 1)
    np.fill_diagonal(equations, together * none * (rho - 1) - (a1 - a2) - t * (a2 - a0))
    return np.linalg.lstsq(equations, -surplus)[0]

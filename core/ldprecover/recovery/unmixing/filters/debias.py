"""Unbiased frequencies from the reports that pass the filters, by the laws of honest ones."""

import math
from collections.abc import Sequence

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.estimates import NoisyEstimates, noise_sd
from ldprecover.recovery.unmixing.filters.rules import DroppedSet, other_items_laws, set_laws
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray


def set_law(oracle: FrequencyOracle, dropped: DroppedSet) -> list[float]:
    """Return probabilities of an honest report, if reports in some bins of a set are dropped.

    First r0, that a report passes if its user holds no item of the set, and r1, the same for a user
    of one of its items. Three are the probabilities that a report passes and supports a given item
    of the set: A1, for the item's own user; A2, for the user of another item of the set; A0, for
    the user of none. The last are those that a report which passes supports a given item outside:
    B1, for the item's own user; B0, for the user of another item outside; B2, for the user of an
    item of the set. If items are independent, B1 is p, and B0 and B2 are q.
    """
    passing, t, p = ~dropped.bins, dropped.items.size, oracle.p
    k = np.arange(t + 1)
    outsiders, holders = set_laws(oracle, t) * passing
    none, holder = float(outsiders.sum()), float(holders.sum())
    # Each item is supported equally often, given how many of several are: of j of r, in j/r.
    more = set_laws(oracle, t + 1)[0, 1:] * (k + 1) / (t + 1)
    own, without = other_items_laws(oracle, t)
    item = p * float(other_items_laws(oracle, t - 1)[0] @ passing[1:])
    both = p * (own * k) @ passing + (1 - p) * (without * k)[1:] @ passing[:-1]
    return [
        none,
        holder,
        item,
        (float(holders @ k) - item) / (t - 1),
        float(outsiders @ k) / t,
        p * float(own @ passing) / none,
        float(more @ passing) / none,
        float(both) / t / holder,
    ]


def law_of_sizes(oracle: FrequencyOracle, sizes: BoolArray) -> tuple[float, float, float]:
    """Return the probability that an honest report has a size k with `sizes[k]`, and the p and q of
    such reports.
    """
    law, d = oracle.laws.size_law().probabilities(), oracle.domain_size
    share = float(law[sizes].sum())
    # The sizes of reports that support their user's item.
    own = np.append(0.0, other_items_laws(oracle, d - 1)[0])
    p = oracle.p * float(own[sizes].sum()) / share
    return share, p, (float(np.flatnonzero(sizes) @ law[sizes]) / share - p) / (d - 1)


def unbiased_by_sizes(oracle: FrequencyOracle, tally: Tally, sizes: BoolArray) -> NoisyEstimates:
    """Return unbiased estimates from the tally of the reports of the sizes k with `sizes[k]`."""
    share, p, q = law_of_sizes(oracle, sizes)
    rates = tally.counts(oracle) / tally.n
    z = (rates - q) / (p - q)
    sd = noise_sd(z, tally.n, p, q, float(np.median(rates)))
    return NoisyEstimates(z=z, sd=sd, n=tally.n, honest_kept=share)


def unbiased(
    oracle: FrequencyOracle, tally: Tally, sets: Sequence[DroppedSet]
) -> NoisyEstimates | None:
    """Return unbiased estimates from the tally of the reports that no set drops, or None.

    None says that too many users hold items of the sets for the sets to be an attacker's. The sets
    are disjoint. Where the items of a report are not independent, several sets are taken to be.
    The share F of users of a set is estimated and clipped into [0, 1]; near 0 the clipping raises
    its items by up to a third of a standard deviation and lowers their squared error. An item of
    which too little is left is not estimated: it is 1/d, with a large standard deviation.
    """
    d, n, p, q = oracle.domain_size, tally.n, oracle.p, oracle.q
    rates = tally.counts(oracle) / n
    r0, r1, a1, a2, a0, b1, b0, b2 = np.array([set_law(oracle, each) for each in sets]).T
    ratios = r1 / r0  # rho
    # With u = 1 + sum of F (rho - 1), the share of reports that pass over that of users of no set,
    # an item's rate c is by: f gap = (c scale - base) u - sum of F effect.
    none = q * float(np.prod(b0 / q))
    usual_gap = p * float(np.prod(b1 / p)) - none
    scale, base, gap = np.ones(d), np.full(d, none), np.full(d, usual_gap)
    effects = np.outer(ratios * none * (b2 / b0 - 1), np.ones(d))
    for i, dropped in enumerate(sets):
        items = dropped.items
        scale[items], base[items], gap[items] = r0[i] * b0[i] / none, a0[i], a1[i] - a2[i]
        effects[:, items] = 0.0
        effects[i, items] = a2[i] - a0[i] * ratios[i]
    unknown = gap <= THRESHOLDS.least_gap * (p - q)
    gap = np.maximum(gap, THRESHOLDS.least_gap * (p - q))
    fixed = (rates * scale - base) / gap
    slopes = np.outer(ratios - 1, fixed) - effects / gap
    sums = np.array([slopes[:, each.items].sum(axis=1) for each in sets])
    totals = np.array([fixed[each.items].sum() for each in sets])
    masses = np.linalg.lstsq(np.eye(len(sets)) - sums, totals)[0]
    if (masses > THRESHOLDS.set_mass).any() or masses.sum() > 1:
        return None
    masses = np.clip(masses, 0.0, 1.0)
    u = 1 + float(masses @ (ratios - 1))
    z = fixed + masses @ slopes
    sd = noise_sd(z, n, none + usual_gap, none, float(np.median(rates))) * u
    usual = float(np.median(sd))
    for i, dropped in enumerate(sets):
        items = dropped.items
        c = max(float(np.median(rates[items])), THRESHOLDS.least_rate * a0[i] / r0[i])
        sd[items] = math.sqrt(c * (1 - c) / n) * scale[items] * u / gap[items]
    z[unknown], sd[unknown] = 1 / d, THRESHOLDS.unknown_deviation * usual
    return NoisyEstimates(z=z, sd=sd, n=n, honest_kept=float(np.prod(r0)) * u)

"""Unbiased frequencies from the reports that pass the filters, by the laws of honest ones."""

import math
from dataclasses import dataclass

import numpy as np

from ldprecover.distributions import binomial_law
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.filters.rules import DroppedSet, set_laws
from ldprecover.recovery.unmixing.model.noise import noise_sd
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True)
class SetLaw:
    """Probabilities of an honest report, if reports are dropped by their number of items of a set.

    `none` is r0, that a report passes if its user holds no item of the set, `holder` is r1, the
    same for a user of one of its items. The others are the probabilities that a report passes and
    supports a given item of the set: `item` is A1, for the item's own user; `other` is A2, for the
    user of another item of the set; `outsider` is A0, for the user of none.
    """

    none: float
    holder: float
    item: float
    other: float
    outsider: float

    @classmethod
    def of(cls, dropped: DroppedSet, p: float, q: float) -> "SetLaw":
        """Return the probabilities for a set whose reports in some bins are dropped."""
        passing, t = ~dropped.bins, dropped.items.size
        none, holder = set_laws(t, p, q) @ passing
        beside = binomial_law(t - 1, q)  # the items supported beside a given one
        two = np.append((1 - p) * binomial_law(t - 2, q), 0.0) + np.append(
            0.0, p * binomial_law(t - 2, q)
        )
        return cls(
            none=float(none),
            holder=float(holder),
            item=float(p * beside @ passing[1:]),
            other=float(q * two @ passing[1:]),
            outsider=float(q * beside @ passing[1:]),
        )

    @property
    def ratio(self) -> float:
        """rho = r1/r0."""
        return self.holder / self.none


@dataclass(frozen=True, eq=False)
class DebiasedEstimates:
    """Estimates from the reports that pass, and their standard deviations.

    They are not `trusted` if too many users hold items of the dropped sets for the sets to be an
    attacker's. `honest_kept` is the probability that an honest report passes.
    """

    z: FloatArray
    sd: FloatArray
    trusted: bool
    honest_kept: float


def kept_rates(oracle: FrequencyOracle, sizes: BoolArray) -> tuple[float, float]:
    """Return p and q of honest reports of the sizes k where `sizes[k]` is set."""
    law = oracle.laws.size_law().probabilities()
    k = np.arange(sizes.size)
    own = np.append(
        0.0, binomial_law(oracle.domain_size - 1, oracle.q)
    )  # of a report that supports its user's item
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
) -> DebiasedEstimates:
    """Return unbiased estimates from the support counts of the n reports that pass.

    `sizes` are the sizes that pass, `sets` are disjoint sets of items with dropped bins. The share
    of users of a set is estimated and clipped into [0, 1]; near 0 the clipping raises its items by
    up to a third of a standard deviation and lowers their squared error. An item of which too
    little is left is not estimated: it is 1/d, with a large standard deviation.
    """
    p, q = kept_rates(oracle, sizes)
    rates = counts / n
    z = (rates - q) / (p - q)
    c0 = float(np.median(rates))
    shares = [SetLaw.of(dropped, oracle.p, oracle.q) for dropped in sets]
    masses = _masses(rates, sets, shares)
    trusted = bool((masses <= THRESHOLDS.set_mass).all() and masses.sum() <= 1)
    masses = np.clip(masses, 0, 1)
    # u: the share of honest reports that passes, over that of users who hold no item of a set.
    u = 1 + sum(float(mass) * (share.ratio - 1) for mass, share in zip(masses, shares, strict=True))
    z = z * u
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
    return DebiasedEstimates(z, sd, trusted, honest_kept)


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
    masses: FloatArray = np.linalg.lstsq(equations, -surplus)[0]
    return masses

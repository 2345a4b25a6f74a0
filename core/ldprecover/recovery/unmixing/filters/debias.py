"""Unbiased frequencies from the reports that screens keep: what honest ones among them support."""

import math
from dataclasses import dataclass

import numpy as np

from ldprecover.laws.distributions import binomial_law
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.filters.rules import DroppedSet, set_laws
from ldprecover.recovery.unmixing.model.noise import noise_sd
from ldprecover.types import BoolArray, FloatArray, Int64Array

_TOO_MUCH = (
    0.9  # mass of the genuine users in one dropped set beyond which it is theirs, not an attacker's
)
_LITTLE = (
    0.03  # of p - q: what an item of a dropped set must still differ by to be estimated at all
)
# of the rate at which honest reports of others support an item: no rate is taken to be less
_LEAST = 0.1
_UNKNOWN = 20  # times the median standard deviation, of an item that cannot be


@dataclass(frozen=True)
class SetShare:
    """How honest reports fare that are kept by the number of items of a set T they support, of t
    items.

    `none` and `holder` are the probabilities of being kept for a user who holds none of the items,
    r0, and one of them, r1; `item` is that of being kept and supporting a given item of the set for
    its own user, A1, `other` for the user of another item of the set, A2, and `outsider` for the
    user of none, A0.
    """

    none: float
    holder: float
    item: float
    other: float
    outsider: float

    @classmethod
    def of(cls, dropped: DroppedSet, p: float, q: float) -> "SetShare":
        """Return the shares of a set whose reports of some numbers of items are dropped."""
        kept, t = ~dropped.bins, dropped.items.size
        none, holder = set_laws(t, p, q) @ kept
        beside = binomial_law(t - 1, q)  # the items supported beside a given one
        two = np.append((1 - p) * binomial_law(t - 2, q), 0.0) + np.append(
            0.0, p * binomial_law(t - 2, q)
        )
        return cls(
            none=float(none),
            holder=float(holder),
            item=float(p * beside @ kept[1:]),
            other=float(q * two @ kept[1:]),
            outsider=float(q * beside @ kept[1:]),
        )

    @property
    def ratio(self) -> float:
        """rho = r1/r0."""
        return self.holder / self.none


@dataclass(frozen=True, eq=False)
class Rest:
    """Estimates from the kept reports, and their standard deviations.

    They are not to be trusted where the dropped sets have so much mass that they are the users'
    own. `honest_kept` is the probability that an honest report is kept.
    """

    z: FloatArray
    sd: FloatArray
    trusted: bool
    honest_kept: float


def kept_rates(oracle: FrequencyOracle, sizes: BoolArray) -> tuple[float, float]:
    """Return p and q of honest reports of the sizes k where `sizes[k]` is set, under whatever items
    users hold.
    """
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
) -> Rest:
    """Return unbiased estimates from the support counts of the n reports kept.

    `sizes` are the sizes kept, `sets` disjoint sets of items of whose reports some were dropped.
    The mass of a set is itself estimated, and clipped into [0, 1]: where it is next to none, that
    raises its items by up to a third of a standard deviation, and lowers their squared error. Of an
    item in a set so little can be left that it is not estimated: it is 1/d then, with a large
    standard deviation.
    """
    p, q = kept_rates(oracle, sizes)
    rates = counts / n
    z = (rates - q) / (p - q)
    c0 = float(np.median(rates))
    shares = [SetShare.of(dropped, oracle.p, oracle.q) for dropped in sets]
    masses = _masses(rates, sets, shares)
    trusted = bool((masses <= _TOO_MUCH).all() and masses.sum() <= 1)
    masses = np.clip(masses, 0, 1)
    # u, the share of reports that is kept, over that of users who hold none of the sets' items.
    u = 1 + sum(float(mass) * (share.ratio - 1) for mass, share in zip(masses, shares, strict=True))
    z = z * u
    sd = noise_sd(z, n, p, q, c0) * u
    usual = float(np.median(sd))
    for mass, share, dropped in zip(masses.tolist(), shares, sets, strict=True):
        items, gap = dropped.items, share.item - share.other
        if gap <= _LITTLE * (oracle.p - oracle.q):
            z[items], sd[items] = 1 / oracle.domain_size, _UNKNOWN * usual
            continue
        # c_v r0 u = f_v (A1 - A2) + F A2 + A0 (u - F rho)
        z[items] = (
            rates[items] * share.none * u
            - mass * share.other
            - share.outsider * (u - mass * share.ratio)
        ) / gap
        c = max(float(np.median(rates[items])), _LEAST * share.outsider / share.none)
        sd[items] = np.sqrt(c * (1 - c) / n) * share.none * u / gap
    law = oracle.laws.size_law().probabilities()
    honest_kept = float(law[sizes].sum()) * math.prod(share.none for share in shares) * u
    return Rest(z, sd, trusted, honest_kept)


def _masses(rates: FloatArray, sets: tuple[DroppedSet, ...], shares: list[SetShare]) -> FloatArray:
    """Return F, the share of the genuine users that holds an item of each set: the sums of the
    equations above.
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

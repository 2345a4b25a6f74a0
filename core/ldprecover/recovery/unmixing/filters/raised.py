"""What malicious reports added to a set of items, by how many of them each report supports.

Honest reports support k of the t items by a mixture of two laws, whatever users hold. Malicious
ones that raise the set support k by another law, and more of them may conceal that by supporting
none. Counts alone do not tell a popular item from a raised one.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ldprecover.distributions import binomial_law
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.estimates import NoisyEstimates
from ldprecover.recovery.unmixing.filters.excess import non_negative
from ldprecover.recovery.unmixing.filters.rules import set_laws
from ldprecover.recovery.unmixing.raised_sets import Addition
from ldprecover.types import FloatArray, Int64Array

_LIKELY = 6.0  # of squared distance, beyond the best fit
_RATES = np.linspace(0.1, 0.9, 9)  # of coins that malicious reports toss for each item
_LEAST_MIXED = 4  # items that reports of a mixture support at least
_FITS = 3  # of a set that are tried; more take seconds
_LEAST = 1e-3  # share of malicious reports, and error of what they add


@dataclass(frozen=True, kw_only=True)
class RaisedFit:
    """A mixture of honest reports, raising ones and concealing ones, fitted to a histogram.

    `holders` is the share of honest users that hold an item of the set, with its standard `error`.
    `malicious` is the share of raising and concealing reports. `raised` and `concealed` is what
    they add to the sum of the set's frequencies, and take from it. `distance` is chi-squared, and
    one for each further law; in a RaisedSet it is beyond the best fit's, in units of their spread.
    """

    holders: float
    error: float
    malicious: float
    raised: float
    concealed: float
    distance: float


@dataclass(frozen=True, eq=False)
class RaisedSet:
    """A set of items, and the likely fits to how many of them `n` reports support, best first.

    Standard errors grow by the `spread` of the reports around the best fit, as in quasi-likelihood.
    """

    n: int
    fits: list[RaisedFit]
    spread: float

    @classmethod
    def of(cls, oracle: FrequencyOracle, observed: Int64Array) -> "RaisedSet":
        """Return the set of t items of which `observed[k]` reports support k, k = 0..t.

        Of fewer than three items, every histogram has fits that raise the set and others.
        """
        t = observed.size - 1
        laws = _laws(oracle, t) if t > 2 else ()
        each = (_fit(oracle, observed, *pair) for pair in laws)
        fits = sorted((fit for fit in each if fit), key=lambda fit: fit.distance)
        least = fits[0].distance if fits else 0.0
        scale = max(1.0, least / max(t - 3, 1))
        scaled = (replace(fit, distance=(fit.distance - least) / scale) for fit in fits)
        likely = [fit for fit in scaled if fit.distance <= _LIKELY]
        return cls(int(observed.sum()), likely, math.sqrt(scale))

    @property
    def is_certain(self) -> bool:
        """Whether every likely fit raises the set by more than twice what it conceals."""
        return bool(self.fits) and all(
            fit.raised > 2 * (fit.concealed + fit.error) for fit in self.fits
        )


def _fit(
    oracle: FrequencyOracle, observed: Int64Array, raising: FloatArray, concealing: FloatArray
) -> RaisedFit | None:
    """Return the fit by weighted least squares, or None if it raises nothing.

    The rows of `raising` are laws, in any proportion. Each but the first costs what another law
    would explain by chance.
    """
    laws, bins = set_laws(oracle, observed.size - 1), np.arange(observed.size)
    n, parts = float(observed.sum()), np.vstack([laws, raising, concealing])
    usual, own, *others = (parts @ bins).tolist()
    if max(others) <= usual:
        return None
    weights = 1 / np.sqrt(np.maximum(observed, 1))
    numbers = non_negative(observed * weights, parts * weights)
    used = (numbers > 0) | (np.arange(numbers.size) < 2)
    weighted = (parts * weights)[used]
    covariance = np.linalg.pinv(weighted @ weighted.T)[:2, :2]
    honest = max(float(numbers[:2].sum()), 1.0)
    holders = float(numbers[1]) / honest
    gradient = np.array([-holders, 1 - holders]) / honest
    moved = numbers[2:] * (np.array(others) - usual) / (n * (own - usual))
    distance = float((((observed - numbers @ parts) * weights) ** 2).sum())
    return RaisedFit(
        holders=holders,
        error=math.sqrt(max(float(gradient @ covariance @ gradient), 0.0)),
        malicious=float(numbers[2:].sum()) / n,
        raised=float(np.maximum(moved, 0.0).sum()),
        concealed=float(np.maximum(-moved, 0.0).sum()),
        distance=distance + moved.size - 2,
    )


def _laws(oracle: FrequencyOracle, t: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield laws of how many of t items reports support that raise them, and of their counterparts.

    Several rows are a mixture of laws. The counterparts support fewer of the items: exactly a
    number, or none, or one that they raise while others are framed.
    """
    exactly = np.eye(t + 1)
    # Honest reports of fewer items than usual must be left, to tell what their users hold.
    first = max(_LEAST_MIXED, int(oracle.q * t))
    yield from ((exactly[least:], exactly[0]) for least in range(first, t))
    yield from ((exactly[high], exactly[low]) for high in range(2, t + 1) for low in range(high))
    yield from ((binomial_law(t, rate), exactly[0]) for rate in _RATES.tolist())
    for s in range(2, t - 1):  # of the first s items; the others are innocent
        others, rest = set_laws(oracle, t - s)[0], np.zeros(s)
        yield np.append(rest, others), np.append(others, rest) if 2 * s > t else exactly[0]


def additions(
    oracle: FrequencyOracle, estimates: NoisyEstimates, sets: Sequence[tuple[Int64Array, RaisedSet]]
) -> Iterator[Addition]:
    """Yield what malicious reports may have added to the estimates from reports that pass.

    Addition i is by the i-th likely fit of each set, up to three. Reports either displace the other
    items or support them as honest ones do.
    """
    sets = [(items, each) for items, each in sets if each.fits]
    passing, evidence = estimates.n / estimates.honest_kept, 0.0
    for rank in range(min(max((len(each.fits) for _, each in sets), default=0), _FITS)):
        fits = [(items, each, each.fits[min(rank, len(each.fits) - 1)]) for items, each in sets]
        malicious = sum(each.n * fit.malicious for _, each, fit in fits)
        honest = min((sets[0][1].n - malicious) / passing, 1 - _LEAST)
        added = np.zeros(estimates.z.size)
        for items, _, fit in fits:
            total = float(estimates.z[items].sum()) - honest * fit.holders
            added[items] = total / items.size
        error = max(math.hypot(*(fit.error * each.spread for _, each, fit in fits)), _LEAST)
        share, total = 1 - honest, float(added.sum())
        # What some reports add and others conceal cancels in the total, and not in their number.
        gross = max(abs(total) + sum(fit.concealed for *_, fit in fits), _LEAST)
        evidence = evidence if rank else (total / error) ** 2 / 2
        others = max(int(np.count_nonzero(added == 0)), 1)
        displaced = np.where(added, added, (share - total) / others)
        for by_law in (displaced,) if oracle.fixed_size else (displaced, added):
            yield Addition(
                share,
                share * min(error / gross, 1.0),
                evidence - sum(fit.distance for *_, fit in fits) / 2,
                by_law / share,
                all(each.is_certain for _, each in sets),
            )

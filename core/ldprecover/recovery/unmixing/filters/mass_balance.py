"""What malicious reports can have added to a set of items: the evidence of a histogram.

Honest reports support k of the t items by a mixture of two laws, whatever users hold. Malicious
reports that raise the items together support k of them by some other law, unless they are few or
follow the protocol. So the histogram of k bounds what they have added. Counts alone do not: they
do not tell a popular item from a raised one.
"""

import math
from dataclasses import dataclass

import numpy as np

from ldprecover.distributions import binomial_law
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.filters.rules import ReportFilter, set_laws
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

_RATES = np.linspace(0.0, 1.0, 41)[1:-1]  # at which malicious reports support items by coin tosses
_SHARES = np.array([0.0, *np.geomspace(5e-4, 0.6, 45)])  # of malicious reports that raise
_SHARES_OF_NONE = np.array([0.0, *np.geomspace(5e-4, 0.5, 20)])  # that support none of the items
_ZOOMS, _FINER = 3, 17  # grids of the shares, each around the best pair of the one before
_TOTALS = np.array([0.0, *np.geomspace(0.003, 2.5, 60)])
_LEAST_HONEST = 0.05
_LEAST = 1e-300  # probability
_LEAST_PASSING = 1e-6  # probability that a malicious report of some law passes
_LEAST_EVIDENCE = -200.0
_PARAMETERS = 3  # of a mixture: two shares of malicious reports, and one of the users


@dataclass(frozen=True, eq=False)
class MassBalance:
    """The log-evidence that malicious reports added some total to the estimates of a set of items.

    `shares` are the most likely shares of malicious reports at each of the rising `totals`. The
    evidence of the best total is 0.
    """

    totals: FloatArray
    log_evidence: FloatArray
    shares: FloatArray

    def at(self, total: float) -> float:
        """Return the log-evidence for a total; less than 0 counts as 0."""
        return float(np.interp(total, self.totals, self.log_evidence))

    def share_at(self, total: float) -> float:
        """Return the most likely share of malicious reports, given a total."""
        return float(np.interp(total, self.totals, self.shares))

    def likely(self, number: int) -> list[float]:
        """Return at most this many totals above 0, spread over all that are likely."""
        places = np.flatnonzero(self.log_evidence[1:] > -PRIOR.close) + 1
        if places.size > number:
            places = places[np.linspace(0, places.size - 1, number).round().astype(np.int64)]
        return [float(each) for each in self.totals[places]]


def set_histogram(
    oracle: FrequencyOracle, reports: Reports, *, report_filter: ReportFilter, items: Int64Array
) -> Int64Array:
    """Return how many of the reports that pass support k of the items, k = 0..t."""
    supported = oracle.supports(reports[report_filter.of(oracle, reports)], items)
    return np.bincount(np.count_nonzero(supported, axis=1), minlength=items.size + 1)


def mass_balance(
    oracle: FrequencyOracle,
    observed: Int64Array,
    passing: BoolArray | None = None,
    scale: float | None = None,
) -> MassBalance:
    """Return the evidence of a histogram of how many of t items each report supports.

    `observed` and `passing`, both of size t + 1, are the histogram and the bins whose reports pass,
    by default all. `scale` is by how much the estimates' sum over the items grows with each item
    that a report supports, by default 1/(p - q). Malicious reports support each item with one
    probability, or one number of items; some may support none as well. Evidence is the
    likelihood of the best mixture, times the prior density of its share of malicious reports.
    """
    t = observed.size - 1
    k = np.arange(t + 1) if passing is None else np.flatnonzero(passing)
    scale = 1 / (oracle.p - oracle.q) if scale is None else scale
    histogram = observed[k].astype(np.float64)
    n = float(histogram.sum())
    outsiders, holders = (law[k] / law[k].sum() for law in set_laws(oracle, t))
    none = (k == 0).astype(np.float64)
    shares_of_none = _SHARES_OF_NONE if none.any() else np.zeros(1)
    mean, of_outsider, of_holder = (float(law @ k) for law in (histogram / n, outsiders, holders))

    def fitted(raising: FloatArray, b: FloatArray, c: FloatArray) -> _Fits:
        """Return the fit of shares b that raise and c that support none of the items."""
        b, c = (each.ravel() for each in np.meshgrid(b, c, indexing="ij"))
        possible = 1 - b - c > _LEAST_HONEST
        b, c = b[possible], c[possible]
        honest, of_raising = 1 - b - c, float(raising @ k)
        # The share of users of these items follows from the mean number of supported items.
        gap = of_holder - of_outsider
        holding = np.clip((mean - b * of_raising - honest * of_outsider) / (honest * gap), 0.0, 1.0)
        mixture = np.outer(honest * (1 - holding), outsiders) + np.outer(honest * holding, holders)
        mixture += np.outer(b, raising) + np.outer(c, none)
        score = np.log(np.maximum(mixture, _LEAST)) @ histogram
        score += PRIOR.share_decay * np.log(honest)
        return _Fits(b, c, (b * (of_raising - of_outsider) - c * of_outsider) * scale, score)

    fits = []
    for law in _laws(t):
        if law[k].sum() < _LEAST_PASSING:
            continue
        raising = law[k] / law[k].sum()
        b, c = _SHARES, shares_of_none
        for _ in range(_ZOOMS):
            fits.append(fitted(raising, b, c))
            b, c = fits[-1].around(b, c)
    score = np.concatenate([each.score for each in fits])
    best = float(score.max())
    saturated = float(histogram @ np.log(np.maximum(histogram, 1.0) / n))
    # As in quasi-likelihood: where no mixture fits, the evidence of all is less.
    dispersion = max(1.0, 2 * (saturated - best) / max(k.size - _PARAMETERS, 1))
    evidence, shares = _profile(
        np.concatenate([each.total for each in fits]),
        (score - best) / dispersion,
        np.concatenate([each.b + each.c for each in fits]),
    )
    return MassBalance(_TOTALS, evidence, shares)


@dataclass(frozen=True, eq=False)
class _Fits:
    """Shares of malicious reports, the totals they add, and the scores of the mixtures."""

    b: FloatArray
    c: FloatArray
    total: FloatArray
    score: FloatArray

    def around(self, b: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return finer grids of both shares around the best pair of these grids."""
        best = int(self.score.argmax())
        return _finer(b, float(self.b[best])), _finer(c, float(self.c[best]))


def _finer(grid: FloatArray, value: float) -> FloatArray:
    place = int(np.abs(grid - value).argmin())
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, grid.size - 1)]
    return np.linspace(low, high, _FINER) if high > low else grid


def raised_probability(oracle: FrequencyOracle, observed: Int64Array) -> float:
    """Return the probability that malicious reports raised t items by more than the noise.

    `observed` is the histogram of how many of them each report supports. The most likely totals
    above and below the noise are compared; before, it is the probability of an attack.
    """
    balance, t = mass_balance(oracle, observed), observed.size - 1
    p, q = oracle.p, oracle.q
    noise = t * math.sqrt(q * (1 - q) / observed.sum()) / (p - q)
    evidence, above = np.exp(balance.log_evidence), balance.totals > noise
    yes = PRIOR.attack * float(evidence[above].max(initial=0.0))
    return yes / (yes + (1 - PRIOR.attack) * float(evidence[~above].max()))


def _laws(t: int) -> list[FloatArray]:
    """Return laws of the number of items that malicious reports support, of size t + 1 each."""
    return [*(binomial_law(t, rate) for rate in _RATES.tolist()), *np.eye(t + 1)]


def _profile(
    totals: FloatArray, scores: FloatArray, shares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the best score and its share at each of `_TOTALS`; between known ones by lines."""
    cells = np.searchsorted((_TOTALS[1:] + _TOTALS[:-1]) / 2, totals)
    order = np.argsort(scores, kind="stable")
    best, share = np.full(_TOTALS.size, -np.inf), np.zeros(_TOTALS.size)
    best[cells[order]], share[cells[order]] = scores[order], shares[order]
    finite = np.isfinite(best)
    best, share = (np.interp(_TOTALS, _TOTALS[finite], each[finite]) for each in (best, share))
    return np.maximum(best, _LEAST_EVIDENCE), share

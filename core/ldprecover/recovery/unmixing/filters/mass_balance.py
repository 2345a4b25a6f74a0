"""The likelihood of how many items of a set reports support, under honest and malicious laws.

Honest reports support k of the t items by a mixture of two laws, whatever users hold. Malicious
reports that raise the items together support k of them by some other law, unless they are few or
follow the protocol. So the histogram of k bounds what they have added. Counts alone do not: they
do not tell a popular item from a raised one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldprecover.distributions import binomial_law
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.sample import Sample
from ldprecover.recovery.unmixing.filters.rules import set_laws
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import BoolArray, FloatArray, Int64Array

_RATES = np.linspace(0.0, 1.0, 41)[1:-1]  # at which malicious reports support items by coin tosses
_SHARES = np.array([0.0, *np.geomspace(5e-4, 0.6, 21)])  # of malicious reports that raise no item
_ZOOMS, _FINER = 3, 13  # grids of that share, each finer around the best one of the grid before
_LEAST_GAIN = 1e-9  # items by which reports of a law exceed honest ones, to raise the items at all
_TOTALS = np.array([0.0, *np.geomspace(0.003, 2.5, 60)])
_EVERY_TOTAL = np.concatenate([-np.geomspace(0.6, 0.003, 15), _TOTALS])  # below 0 counts as 0
_LEAST_HONEST = 0.05
_LEAST = 1e-300  # probability
_LEAST_PASSING = 1e-6  # probability that a malicious report of some law passes
_LEAST_EVIDENCE = -200.0
_PARAMETERS = 3  # of a mixture: two shares of malicious reports, and one of the users


@dataclass(frozen=True, eq=False)
class MassBalance:
    """The log-evidence that malicious reports added some total to the estimates of a set of items.

    `shares` are the most likely shares of malicious reports at each of the rising `totals`. The
    evidence of the best total is 0. `raised` is the probability that they added more than the
    noise, and `unconcealed` that they added more than half of what those add that support the items
    too often; before, each is the probability of an attack. `is_separable` says that without those
    reports the sum of the estimates is expected to be nearer to what users hold, noise included.
    """

    totals: FloatArray
    log_evidence: FloatArray
    shares: FloatArray
    raised: float
    unconcealed: float
    is_separable: bool

    def at(self, total: float) -> float:
        """Return the log-evidence for a total; less than 0 counts as 0."""
        return float(np.interp(total, self.totals, self.log_evidence))

    def share_at(self, total: float) -> float:
        """Return the most likely share of malicious reports, given a total."""
        return float(np.interp(total, self.totals, self.shares))

    def likely(self, number: int) -> list[float]:
        """Return at most this many totals, spread over all that are likely."""
        places = np.flatnonzero(self.log_evidence > -PRIOR.close)
        if places.size > number:
            places = places[np.linspace(0, places.size - 1, number).round().astype(np.int64)]
        return self.totals[places].tolist()


def set_histogram(sample: Sample, *, items: Int64Array) -> Int64Array:
    """Return how many of the reports support k of the t items, k = 0..t."""
    return sample.bincount(np.count_nonzero(sample.supports(items), axis=1), items.size + 1)


def mass_balance(
    oracle: FrequencyOracle,
    observed: Int64Array,
    passing: BoolArray | None = None,
    scale: float | None = None,
) -> MassBalance:
    """Return the evidence of a histogram of how many of t items each report supports.

    `observed` and `passing`, both of size t + 1, are the histogram and the bins whose reports pass,
    by default all. `scale` is by how much the estimates' sum over the items grows with each item
    that a report supports, by default 1/(p - q). Some malicious reports follow a law that raises
    the items and some follow its counterpart, which conceals that: see `_laws`. Evidence is the
    likelihood of the mixture that is the most likely one with the prior of its share.
    """
    t = observed.size - 1
    k = np.arange(t + 1) if passing is None else np.flatnonzero(passing)
    scale = 1 / (oracle.p - oracle.q) if scale is None else scale
    honest = [law[k] / law[k].sum() for law in set_laws(oracle, t)]
    histogram = _Histogram(k, observed[k].astype(np.float64), honest[0], honest[1], scale)
    fits = [each for pair in _laws(oracle, t) for each in histogram.fits(*(law[k] for law in pair))]
    likelihood, log_prior, shares, gross, holding, _ = np.stack(fits, axis=1)
    best = float(likelihood[log_prior > -np.inf].max())
    # As in quasi-likelihood: where no mixture fits, the evidence of all is less.
    dispersion = max(1.0, 2 * (histogram.saturated - best) / max(k.size - _PARAMETERS, 1))
    likelihood = np.maximum((likelihood - best) / dispersion, _LEAST_EVIDENCE)
    scores = likelihood + log_prior

    totals, added = _EVERY_TOTAL, gross[_place(scores)]
    bias = totals - shares * holding
    noise = t * math.sqrt(oracle.q * (1 - oracle.q) / histogram.n) / (oracle.p - oracle.q)
    raised, _, _ = _odds(scores, totals > noise)
    unconcealed, yes, no = _odds(scores, totals > max(noise, added / 2))
    expected = unconcealed * bias[yes] + (1 - unconcealed) * bias[no]

    log_evidence, share = np.full(_TOTALS.size, _LEAST_EVIDENCE), np.zeros(_TOTALS.size)
    for place, total in enumerate(_TOTALS):
        same = np.maximum(totals, 0.0) == total  # totals below 0 count as 0
        of_total = np.where(same, scores, -np.inf)
        if of_total.max() > -np.inf:
            fit = _place(of_total)
            log_evidence[place], share[place] = likelihood[fit], shares[fit]
    # Without the reports the squared error is (expected - added)^2, and more noise, about as much.
    is_separable = added > 0 and 2 * float(expected) * added > added**2 + noise**2
    return MassBalance(_TOTALS, log_evidence, share, raised, unconcealed, is_separable)


@dataclass(frozen=True, eq=False)
class _Histogram:
    """The numbers of reports that support k items in the bins that pass, and the honest laws of k.

    `outsiders` is that of users of none of the items, `holders` that of users of one. The estimates
    grow by `scale` with each item that a report supports.
    """

    k: Int64Array
    observed: FloatArray
    outsiders: FloatArray
    holders: FloatArray
    scale: float

    @property
    def n(self) -> float:
        """Number of reports."""
        return float(self.observed.sum())

    @property
    def saturated(self) -> float:
        """The log-likelihood of the law that fits each bin."""
        return float(self.observed @ np.log(np.maximum(self.observed, 1.0) / self.n))

    def fits(self, raising: FloatArray, other: FloatArray) -> Iterator[FloatArray]:
        """Yield the best mixtures with a law that raises and its counterpart, on finer grids.

        Each result has six rows with a value for each total: the log-likelihood; the log-prior; the
        share of malicious reports; what those that raise the items add; the share of users who hold
        one of the items; and the share of the reports of the counterpart.
        """
        if raising.sum() < _LEAST_PASSING:
            return
        raising = raising / raising.sum()
        if abs(float((raising - self.outsiders) @ self.k)) < _LEAST_GAIN:
            return
        shares = _SHARES if other.sum() >= _LEAST_PASSING else np.zeros(1)
        other = other / max(other.sum(), _LEAST_PASSING)
        c = np.broadcast_to(shares, (_EVERY_TOTAL.size, shares.size))
        for _ in range(_ZOOMS if shares.size > 1 else 1):
            fits = self._fitted(raising, other, c)
            yield fits
            c = _finer(c, fits[-1])

    def _fitted(self, raising: FloatArray, other: FloatArray, c: FloatArray) -> FloatArray:
        """Return the best fit of each total; c are grids of the shares of the counterpart."""
        mean, of_outsider, of_holder, of_raising, of_other = (
            float(law @ self.k)
            for law in (self.observed / self.n, self.outsiders, self.holders, raising, other)
        )
        gain = of_raising - of_outsider
        b = (_EVERY_TOTAL[:, None] / self.scale + c * (of_outsider - of_other)) / gain
        honest = 1 - b - c
        possible = (b >= 0) & (honest > _LEAST_HONEST)
        honest = np.where(possible, honest, 1.0)
        # The share of users of these items follows from the mean number of supported items.
        rest = (mean - b * of_raising - c * of_other) / honest
        holding = np.clip((rest - of_outsider) / (of_holder - of_outsider), 0.0, 1.0)
        weights = np.stack([honest * (1 - holding), honest * holding, b, c], axis=-1)
        mixture = weights @ np.stack([self.outsiders, self.holders, raising, other])
        likelihood = np.log(np.maximum(mixture, _LEAST)) @ self.observed
        log_prior = np.where(possible, PRIOR.share_decay * np.log(honest), -np.inf)
        best = (likelihood + log_prior).argmax(axis=1)[:, None]
        values = (likelihood, log_prior, b + c, b * gain * self.scale, holding, c)
        return np.stack([np.take_along_axis(each, best, 1)[:, 0] for each in values])


def _odds(
    scores: FloatArray, raising: BoolArray
) -> tuple[float, tuple[np.intp, ...], tuple[np.intp, ...]]:
    """Return the probability of the totals that raise, and the likeliest places with and without.

    Before, it is the probability of an attack.
    """
    yes, no = (_place(np.where(each, scores, -np.inf)) for each in (raising, ~raising))
    odds = PRIOR.attack / (1 - PRIOR.attack) * math.exp(scores[yes] - scores[no])
    return odds / (1 + odds), yes, no


def _place(scores: FloatArray) -> tuple[np.intp, ...]:
    """Return the place of the largest score."""
    return np.unravel_index(scores.argmax(), scores.shape)


def _finer(grids: FloatArray, values: FloatArray) -> FloatArray:
    """Return finer grids, one row each, between the neighbours of the values in their grids."""
    places = np.abs(grids - values[:, None]).argmin(axis=1)[:, None]
    low, high = (
        np.take_along_axis(grids, np.clip(places + step, 0, grids.shape[1] - 1), 1)
        for step in (-1, 1)
    )
    return low + (high - low) * np.linspace(0.0, 1.0, _FINER)


def _laws(oracle: FrequencyOracle, t: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield laws of how many of t items malicious reports support, each with its counterpart.

    They toss a coin for each item, or support some number of them; the counterparts support none,
    or one item that they raise while the others are framed.
    Or they support all of the first s items, and the others as honest reports do. The counterparts
    support none of these s if they are more than half of the items: with half of them any raised
    set would as well be a framed one.
    """
    none, numbers = np.eye(t + 1)[0], np.arange(t + 1)
    yield from ((binomial_law(t, rate), none) for rate in _RATES.tolist())
    yield from ((law, none) for law in np.eye(t + 1)[1:])
    yield np.eye(t + 1)[t], np.eye(t + 1)[1]
    each_set = set_laws(oracle, t)[0] / [math.comb(t, number) for number in numbers]
    for s in range(2, t):
        ways = np.array([math.comb(t - s, number) for number in range(t - s + 1)])
        raising, other = np.zeros(t + 1), np.zeros(t + 1)
        raising[s:], other[: t - s + 1] = ways * each_set[s:], ways * each_set[: t - s + 1]
        if raising.any() and other.any():
            yield raising / raising.sum(), other / other.sum() if 2 * s > t else none

"""Which bins of a histogram hold more reports than a mixture of honest laws explains."""

from dataclasses import dataclass

import numpy as np

from ldprecover.types import BoolArray, FloatArray, Int64Array

_FAR = 6.0  # standard deviations by which a bin must be above the fit
_MOST = 21  # bins that are taken out, one at a time


@dataclass(frozen=True, eq=False)
class Excess:
    """Which bins are too full, and what the mixture that was fitted to the others has in each
    bin.
    """

    bins: BoolArray
    fit: FloatArray

    def score(self, observed: Int64Array) -> float:
        """Return how far the bins together are above the fit, in standard deviations; 0 without a
        bin.
        """
        beyond = float((observed - self.fit)[self.bins].sum())
        return beyond / float(np.sqrt(self.fit[self.bins].sum() + 1))


def excess_bins(observed: Int64Array, laws: FloatArray, share: float) -> Excess:
    """Return the bins that hold more than the mixture of one or two laws that fits the others best.

    `observed` are the numbers of reports in the bins, `laws` is (1, bins) or (2, bins): the
    probability of each bin. The mixture is fitted by least squares, each bin divided by the
    standard deviation that it has under the laws, with no negative part. A bin is too full where it
    is six standard deviations above the fit, and a `share` of it is above. The fullest is taken
    out, the others are fitted anew, until none is too full.
    """
    weights = 1 / np.sqrt(np.maximum(observed.sum() * laws.sum(axis=0), 1))
    bins = np.zeros(observed.size, np.bool_)
    fit = _mixture(observed, laws, weights)
    for _ in range(_MOST):
        above = observed - fit
        scores = np.where(bins | (above <= share * observed), 0.0, above / np.sqrt(fit + 1))
        worst = int(scores.argmax())
        if scores[worst] <= _FAR:
            break
        bins[worst] = True
        fit = _mixture(observed, laws, np.where(bins, 0.0, weights))
    return Excess(bins, fit)


def _mixture(observed: Int64Array, laws: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the non-negative combination of the laws that is nearest to what was observed, by
    weighted squares.
    """
    weighted, wanted = laws * weights, observed * weights
    products, sums = weighted @ weighted.T, weighted @ wanted
    alone = np.divide(sums, np.diag(products), out=np.zeros(len(laws)), where=np.diag(products) > 0)
    if len(laws) == 1:
        return np.asarray(np.maximum(alone, 0) @ laws)
    (a, b), (_, c) = products
    both = np.array([c * sums[0] - b * sums[1], a * sums[1] - b * sums[0]])
    determinant = a * c - b * b
    if determinant > 1e-12 * a * c and (both >= 0).all():
        return np.asarray(both / determinant @ laws)
    # One part is none: the other is what it is alone, and the better of the two is taken.
    best = int(np.argmax(alone * sums))
    return np.asarray(max(float(alone[best]), 0.0) * laws[best])

"""Bins of a histogram that hold more reports than a mixture of honest laws explains."""

import numpy as np

from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import BoolArray, FloatArray, Int64Array


def excess_bins(observed: Int64Array, laws: FloatArray, share: float) -> tuple[BoolArray, float]:
    """Return the bins that exceed a fitted mixture of honest laws, and by how many deviations.

    `observed` holds the number of reports in each bin, `laws` the probability of each bin, of shape
    (laws, bins). The mixture is fitted by non-negative least squares, with each bin divided by its
    standard deviation under the laws. A bin is too full if it exceeds the fit by six standard
    deviations and by a `share` of its reports. The fullest bin is taken out and the others are
    fitted again, until none is too full.
    """
    weights = 1 / np.sqrt(np.maximum(observed.sum() * laws.sum(axis=0), 1))
    bins = np.zeros(observed.size, np.bool_)
    while True:
        used = np.where(bins, 0.0, weights)
        fit = non_negative(used * observed, laws * used) @ laws
        above = observed - fit
        scores = np.where(bins | (above <= share * observed), 0.0, above / np.sqrt(fit + 1))
        worst = int(scores.argmax())
        if scores[worst] <= THRESHOLDS.bin_score:
            return bins, float(above[bins].sum() / np.sqrt(fit[bins].sum() + 1))
        bins[worst] = True


def non_negative(target: FloatArray, regressors: FloatArray) -> FloatArray:
    """Return coefficients, none below 0, by least squares; the lowest are set to 0 in turn."""
    coefficients, used = np.zeros(len(regressors)), np.arange(len(regressors))
    while used.size:
        values = np.linalg.lstsq(regressors[used].T, target)[0]
        if values.min() >= 0:
            coefficients[used] = values
            break
        used = np.delete(used, values.argmin())
    return coefficients

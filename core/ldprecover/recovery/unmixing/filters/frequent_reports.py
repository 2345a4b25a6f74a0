"""Drops reports that occur too often, where all different reports are listed with their laws.

The probability of each report is linear in the frequencies. So the estimates predict how often
honest users send it, whatever they hold. Crafted reports that raise many items together are few
different ones.
"""

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.unmixing.estimates import NoisyEstimates, estimates_of_counts
from ldprecover.recovery.unmixing.filters.rules import MOST_ITEMS
from ldprecover.recovery.unmixing.model.noise import noise_sd, rounded
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import BoolArray, FloatArray, Int64Array

_DEVIATIONS, _OFFSET = 7.0, 25.0  # by which a report is too frequent: 1e-6 of rounds have one
_WORST = 0.5  # share of the largest surplus, from which reports are dropped together
_ROUNDS = 64  # of drops
_STEPS, _CLOSE = 500, 1e-4  # of a solution, and the change in deviations that ends it
_SHARED = 0.9  # of the dropped reports support an item that they raised


def fits(oracle: FrequencyOracle) -> bool:
    """Return whether a tally lists the reports, which support several items and have one law."""
    laws, traits = oracle.laws, oracle.traits
    has_law = laws.report_sums is not None and laws.likelihood_ratio is not None
    return traits.histogram and not traits.one_item and has_law


def without_frequent_reports(oracle: FrequencyOracle, tally: Tally) -> NoisyEstimates:
    """Return unbiased estimates without the reports that are too frequent.

    In each round those reports are dropped that exceed the prediction most, and the frequencies
    are solved again from the others. Suspects are items that nearly all dropped reports support,
    if these are at most 24. Raises ParameterError if there are no reports, or none passes.
    """
    if not tally.n:
        raise ParameterError("there are no reports to filter")
    passing = np.ones(oracle.summary_size, np.bool_)
    estimates = oracle.estimate(tally.counts(oracle), tally.n)
    result = estimates_of_counts(oracle, estimates, tally.n)
    for _ in range(_ROUNDS):
        surplus = _surplus(oracle, tally.summary, passing, result.z)
        largest = float(surplus.max())
        if largest <= 0:
            break
        passing = passing & (surplus < _WORST * largest)
        solved = _debiased(oracle, np.where(passing, tally.summary, 0), passing, result.z)
        if solved is None or solved.honest_kept < 1 - THRESHOLDS.honest_loss:
            note = "Many different reports are too frequent, so no report was dropped for it."
            every = estimates_of_counts(oracle, estimates, tally.n)
            return NoisyEstimates(every.z, every.sd, every.n, notes=(note,))
        result = solved
    if passing.all():
        return result
    return _described(oracle, np.where(passing, 0, tally.summary), result)


def _surplus(
    oracle: FrequencyOracle, summary: Int64Array, passing: BoolArray, frequencies: FloatArray
) -> FloatArray:
    """Return by how much each report that is too frequent exceeds its prediction, else 0."""
    n = int(summary[passing].sum())
    likelihoods = _likelihoods(oracle, frequencies)
    expected = n * likelihoods / likelihoods[passing].sum()
    excess = np.where(passing, summary - expected, 0.0)
    chance = _DEVIATIONS * np.sqrt(expected) + _OFFSET
    frequent = excess > np.maximum(chance, THRESHOLDS.set_excess * summary)
    return np.asarray(np.where(frequent, excess, 0.0))


def _likelihoods(oracle: FrequencyOracle, frequencies: FloatArray) -> FloatArray:
    """Return the likelihood of each report, 1 at least: of one that supports no user's item."""
    sums, ratio = oracle.laws.report_sums, oracle.laws.likelihood_ratio
    assert sums is not None  # `fits` says so
    assert ratio is not None
    return np.asarray(np.maximum(1 + (ratio - 1) * sums.masses(frequencies), 1.0))


def _debiased(
    oracle: FrequencyOracle, summary: Int64Array, passing: BoolArray, start: FloatArray
) -> NoisyEstimates | None:
    """Return the frequencies under which the reports that pass support each item as often as here.

    None if no such frequencies are found.
    """
    sums, ratio = oracle.laws.report_sums, oracle.laws.likelihood_ratio
    assert sums is not None  # `fits` says so
    assert ratio is not None
    n = int(summary.sum())
    if not n:
        raise ParameterError("all reports would be dropped, and nothing is left to estimate from")
    rates = oracle.counts_from(summary) / n
    supporting = sums.counts(passing.astype(np.float64))
    enough = supporting > THRESHOLDS.least_gap * sums.number * oracle.q
    z = np.where(enough, start, 1 / oracle.domain_size)
    close = _CLOSE * float(np.sqrt(oracle.variance(0.0, n)))
    for _ in range(_STEPS):
        likelihoods = 1 + (ratio - 1) * sums.masses(z)
        total = float(likelihoods[passing].sum())
        expected = sums.counts(np.where(passing, likelihoods, 0.0)) / total
        gain = (ratio - 1) * np.maximum(supporting, 1.0) * (1 - expected) / total
        step = np.where(enough, (rates - expected) / gain, 0.0)
        z = z + step
        if np.abs(step).max() < close:
            break
    else:
        return None
    p, q = oracle.p, oracle.q
    sd = noise_sd(z, n, p, q, float(np.median(rates))) * rounded((p - q) / gain)
    sd[~enough] = THRESHOLDS.unknown_deviation * np.median(sd[enough])
    honest_kept = min(total / float(likelihoods.sum()), 1.0)
    return NoisyEstimates(z, sd, n, honest_kept=honest_kept)


def _described(
    oracle: FrequencyOracle, dropped: Int64Array, result: NoisyEstimates
) -> NoisyEstimates:
    """Return the estimates with the number of dropped reports, and the items that they share."""
    n = int(dropped.sum())
    shared = np.flatnonzero(oracle.counts_from(dropped) >= _SHARED * n)
    suspects = dict.fromkeys(shared.tolist(), 1.0) if shared.size <= MOST_ITEMS else {}
    different = int(np.count_nonzero(dropped))
    description = f"reports of {different} different kinds, each of which occurs too often"
    return NoisyEstimates(
        result.z,
        result.sd,
        result.n,
        suspects=suspects,
        dropped=(Dropped("frequent reports", description, n),),
        honest_kept=result.honest_kept,
    )

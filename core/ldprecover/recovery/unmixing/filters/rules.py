"""The reports that pass the filters, and the laws of how many items honest reports support."""

from dataclasses import dataclass

import numpy as np

from ldprecover.distributions import log_choose
from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.laws import HITS, required
from ldprecover.reports.sample import Sample
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray, FloatArray, Int64Array

MOST_ITEMS = 24
"""Maximum items of a set: a histogram of a set's supported items has 25 bins."""


@dataclass(frozen=True, eq=False)
class DroppedSet:
    """A set of t items; `bins[k]`, k = 0..t, says whether reports that support k are dropped."""

    items: Int64Array
    bins: BoolArray

    def price(self, oracle: FrequencyOracle) -> float:
        """The logarithm of the number of sets as large."""
        return log_choose(oracle.domain_size, self.items.size)


def other_items_laws(oracle: FrequencyOracle, r: int) -> tuple[FloatArray, FloatArray]:
    """Return the laws of how many of r items a report supports that its user does not hold.

    The first is for a report that supports its user's item, the second for one that does not.
    """
    hits = required(oracle.laws.hits, oracle.protocol, HITS)
    with_own, without = (
        required(hits.other_items_law(r, own), oracle.protocol, HITS) for own in (True, False)
    )
    return with_own, without


def set_laws(oracle: FrequencyOracle, t: int) -> FloatArray:
    """Return the two laws of how many of t items an honest report supports, as (2, t + 1).

    Row 0 is for a user of none of them, row 1 for a user of one of them.
    """
    p = oracle.p
    outside, inside = other_items_laws(oracle, t), other_items_laws(oracle, t - 1)
    holder = p * np.append(0.0, inside[0]) + (1 - p) * np.append(inside[1], 0.0)
    return np.stack([p * outside[0] + (1 - p) * outside[1], holder])


def summary_and_sizes(sample: Sample) -> Int64Array:
    """Return the summary of the reports, and the d + 1 numbers of those that support k items."""
    oracle = sample.oracle
    if sample.multiplicities is not None:
        return np.concatenate([sample.tally().summary, sample.size_counts()])
    summary, sizes = oracle.summarise_with_sizes(sample.reports)
    return np.concatenate([summary, np.bincount(sizes, minlength=oracle.domain_size + 1)])


def tally_of_sizes(sample: Sample, *, sizes: BoolArray) -> Tally:
    """Return the tally of the reports of the sizes k where `sizes[k]` is set."""
    return sample[sizes[sample.sizes()]].tally()


def hits_of(sample: Sample, *, items: Int64Array) -> Int64Array:
    """Return how many reports support k of the items, k = 0..t."""
    hits = np.count_nonzero(sample.supports(items), axis=1)
    return sample.bincount(hits, items.size + 1)

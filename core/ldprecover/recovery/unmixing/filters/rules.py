"""How many items reports support, of all and of sets, and the laws of honest ones."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.laws import HITS, required
from ldprecover.reports.sample import Sample
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray, FloatArray, Int64Array

MOST_ITEMS = 24
"""Maximum items of a set: a histogram of a set's supported items has 25 bins."""


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


def hits_of(source: ReportSource, sets: Sequence[Int64Array]) -> list[Int64Array]:
    """Return a table for each set of t items: row k is of the reports that support k of them.

    Its columns are the number of these reports, and how many of them support each item. One pass.
    """
    shapes = [(items.size + 1, items.size + 1) for items in sets]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    tables = np.split(source.total(partial(_tables, sets=sets)), ends[:-1]) if sets else []
    return [table.reshape(shape) for table, shape in zip(tables, shapes, strict=True)]


def _tables(sample: Sample, *, sets: Sequence[Int64Array]) -> Int64Array:
    parts = []
    for items in sets:
        supports, size = sample.supports(items), items.size + 1
        hits = np.count_nonzero(supports, axis=1)
        rows = [sample.bincount(hits, size)]
        rows += [sample.bincount(hits * each, size) for each in supports.T]
        table = np.stack(rows, axis=1)
        table[0, 1:] = 0  # the reports that do not support an item
        parts.append(table.ravel())
    return np.concatenate(parts)

"""Partitions of a protocol's reports into cells whose probabilities are known for every item."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.distributions import split_law
from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.wire import IntegerForm
from ldprecover.types import FloatArray, Int64Array, Reports

_MOST_LAWS = 1 << 24  # probabilities of single reports: 128 MB
_BINS = 33  # of a number of supported items
_DEVIATIONS = 4.0  # standard deviations of it on either side that have bins


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition: `laws[types[v]]` are the probabilities of its a x b cells for a user of v.

    A cell is an interval of how many of the `items` a report supports, and one of how many others:
    `bins` maps both numbers to their intervals. Without items the reports are integers, and the
    first of the bins maps these to cells.
    """

    laws: FloatArray
    types: Int64Array
    bins: tuple[Int64Array, ...]
    items: Int64Array | None = None

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.laws[0].size)

    def law(self, frequencies: FloatArray) -> FloatArray:
        """Return the probabilities of the cells for users of these frequencies, (a, b)."""
        weights = np.bincount(self.types, frequencies, minlength=len(self.laws))
        return np.tensordot(weights, self.laws, 1)

    def means(self, values: FloatArray) -> FloatArray:
        """Return the mean of the cells' values for a user of each item."""
        return np.tensordot(self.laws, values, 2)[self.types]


def numbers_of_cells(
    partitions: Sequence[Partition], oracle: FrequencyOracle, reports: Reports
) -> list[Int64Array]:
    """Return the cell of each report, for each partition."""
    sets = [cells.items for cells in partitions if cells.items is not None]
    if not sets:
        return [cells.bins[0][reports] for cells in partitions]
    numbers, sizes = [], oracle.support_sizes(reports)
    for cells, items in zip(partitions, sets, strict=True):
        hits = np.count_nonzero(oracle.supports(reports, items), axis=1)
        numbers.append(cells.bins[0][hits] * cells.laws.shape[2] + cells.bins[1][sizes - hits])
    return numbers


def report_cells(oracle: FrequencyOracle, sets: Sequence[Int64Array]) -> list[Partition]:
    """Return the cells that are single reports, and by how many items of a set these support.

    Empty where reports are not integers or too many, or their likelihood does not have one ratio
    between the items that they support and the others.
    """
    d, laws, limit = oracle.domain_size, oracle.laws, oracle.wire.columns[0].limit
    if not isinstance(oracle.wire, IntegerForm) or limit * d > _MOST_LAWS:
        return []
    if laws.log_likelihood is None or laws.likelihood_ratio is None:
        return []
    reports = np.arange(limit).astype(oracle.wire.dtype)
    supports = oracle.supports(reports)
    ratios = np.where(supports.T, laws.likelihood_ratio, 1.0)
    uniform = np.exp(laws.log_likelihood(reports, np.full(d, 1 / d)))
    law = ratios * (uniform / ratios.mean(axis=0))
    all_bins = (np.arange(limit), *(np.count_nonzero(supports[:, x], axis=1) for x in sets))
    return [
        Partition(_summed(law, 1, bins)[:, :, None], np.arange(d), (bins,)) for bins in all_bins
    ]


def set_cells(oracle: FrequencyOracle, items: Int64Array) -> Partition | None:
    """Return the cells of a set of items and of the others.

    None where the law of how many of several items a report supports is not known, or depends on
    the items. Where it does not, all sets of as many items are equally likely.
    """
    d, hits, p = oracle.domain_size, oracle.laws.hits, oracle.p
    without, with_own = (
        None if hits is None else hits.other_items_law(d - 1, own) for own in (False, True)
    )
    numbers = np.array([items.size, d - items.size])
    if without is None or with_own is None or np.prod(numbers + 1) > _MOST_LAWS:
        return None
    bins = tuple(_bins(int(n), oracle.q) for n in numbers)
    laws = []
    # The user's item is of the set, or of the others if there are any.
    for own in np.eye(2, dtype=int)[numbers > 0]:
        split = split_law(*(numbers - own))
        both = np.add.outer(*map(np.arange, split.shape))
        joint = (1 - p) * np.pad(without[both] * split, [(0, n) for n in own])
        joint += p * np.pad(with_own[both] * split, [(n, 0) for n in own])
        laws.append(_summed(_summed(joint, 0, bins[0]), 1, bins[1]))
    types = np.isin(np.arange(d), items, invert=True).astype(np.int64)
    return Partition(np.array(laws), types, bins, items)


def _bins(n: int, q: float) -> Int64Array:
    """Return the interval of each number from 0 to n: of one, or of equal lengths but the ends."""
    k = np.arange(n + 1)
    if n >= _BINS:
        length = max(1.0, 2 * _DEVIATIONS * (np.sqrt(n * q * (1 - q)) + 1) / (_BINS - 2))
        k = np.clip((k - n * q) // length + _BINS // 2, 0, _BINS - 1).astype(np.int64)
    return np.unique(k, return_inverse=True)[1]


def _summed(values: FloatArray, axis: int, bins: Int64Array) -> FloatArray:
    """Return the sums of values along an axis that have the same bin."""
    moved = np.moveaxis(values, axis, 0)
    summed = np.zeros((int(bins.max()) + 1, *moved.shape[1:]))
    np.add.at(summed, bins, moved)
    return np.moveaxis(summed, 0, axis)

"""Partitions of a protocol's reports into cells whose probabilities are known for every item."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.wire import IntegerForm
from ldprecover.types import FloatArray, Int64Array, Reports

_MOST_LAWS = 1 << 24  # probabilities of single reports: 128 MB
_BINS = 33  # of a number of supported items
_DEVIATIONS = 4.0  # standard deviations of it on either side that have bins


@dataclass(frozen=True, eq=False)
class Cells:
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
    partitions: Sequence[Cells], oracle: FrequencyOracle, reports: Reports
) -> list[Int64Array]:
    """Return the cell of each report, for each partition."""
    sets = [cells.items for cells in partitions if cells.items is not None]
    if not sets:
        return [cells.bins[0][reports] for cells in partitions]
    union = np.unique(np.concatenate(sets))
    chosen = np.stack([np.isin(union, items) for items in sets], axis=1).astype(np.float32)
    hits = (oracle.supports(reports, union) @ chosen).astype(np.int64).T
    others = oracle.support_sizes(reports) - hits
    return [
        cells.bins[0][k] * cells.laws.shape[2] + cells.bins[1][rest]
        for cells, k, rest in zip(partitions, hits, others, strict=True)
    ]


def report_cells(oracle: FrequencyOracle, sets: Sequence[Int64Array]) -> list[Cells]:
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
    return [Cells(_summed(law, 1, bins)[:, :, None], np.arange(d), (bins,)) for bins in all_bins]


def set_cells(oracle: FrequencyOracle, items: Int64Array) -> Cells | None:
    """Return the cells of a set of items and of the others.

    None where the law of how many of several items a report supports is not known, or depends on
    the items. Where it does not, all sets of as many items are equally likely.
    """
    d, hits, p = oracle.domain_size, oracle.laws.hits, oracle.p
    without, with_own = (None if hits is None else hits.beside(d - 1, own) for own in (False, True))
    if without is None or with_own is None:
        return None
    numbers = np.array([items.size, d - items.size])
    if np.prod(numbers + 1) > _MOST_LAWS:
        return None
    bins = tuple(_bins(int(n), oracle.q) for n in numbers)
    laws = []
    for own in np.eye(2, dtype=int):  # the user's item is of the set, or of the others
        joint = np.zeros(numbers + 1)
        if (numbers >= own).all():
            joint[tuple(map(slice, numbers + 1 - own))] += (1 - p) * _joint(without, numbers - own)
            joint[own[0] :, own[1] :] += p * _joint(with_own, numbers - own)
        laws.append(_summed(_summed(joint, 0, bins[0]), 1, bins[1]))
    types = np.isin(np.arange(d), items, invert=True).astype(np.int64)
    return Cells(np.array(laws), types, bins, items)


def _joint(law: FloatArray, numbers: Int64Array) -> FloatArray:
    """Return P(k, l) of how many of two sets are supported, given the law of k + l."""
    log_factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, numbers.sum() + 1))))

    def log_ways(n: int, k: Int64Array) -> FloatArray:
        ways: FloatArray = log_factorials[n] - log_factorials[k] - log_factorials[n - k]
        return ways

    n, others = numbers
    k, rest = np.arange(n + 1)[:, None], np.arange(others + 1)
    ways = log_ways(n, k) + log_ways(others, rest) - log_ways(n + others, k + rest)
    return np.asarray(law[k + rest] * np.exp(ways))


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

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
    """A partition: row `types[v]` of `laws` has the probabilities of its cells for a user of v.

    A cell is an interval of how many items of each set a report supports, and of how many of the
    other items: `bins` maps these numbers to their intervals. Without `sets` the reports are
    integers, and `bins` maps these to cells.
    """

    laws: FloatArray
    types: Int64Array
    shape: tuple[int, ...]
    sets: tuple[Int64Array, ...] = ()
    bins: tuple[Int64Array, ...] = ()

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.laws.shape[1])

    def law(self, frequencies: FloatArray) -> FloatArray:
        """Return the probabilities of the cells for users of these frequencies."""
        return np.bincount(self.types, frequencies, minlength=len(self.laws)) @ self.laws

    def means(self, values: FloatArray) -> FloatArray:
        """Return the mean of the cells' values for a user of each item."""
        return (self.laws @ values)[self.types]


def numbers_of_cells(
    partitions: Sequence[Cells], oracle: FrequencyOracle, reports: Reports
) -> list[Int64Array]:
    """Return the cell of each report, for each partition."""
    sets = [items for cells in partitions for items in cells.sets]
    if not sets:
        return [cells.bins[0][reports] for cells in partitions]
    union = np.unique(np.concatenate(sets))
    chosen = np.stack([np.isin(union, items) for items in sets], axis=1).astype(np.float32)
    hits = iter((oracle.supports(reports, union) @ chosen).astype(np.int64).T)
    sizes = oracle.support_sizes(reports)
    numbers = []
    for cells in partitions:
        in_sets = [next(hits) for _ in cells.sets]
        in_all = [*in_sets, sizes - sum(in_sets)]
        places = [bins[k] for bins, k in zip(cells.bins, in_all, strict=True)]
        numbers.append(np.ravel_multi_index(places, cells.shape))
    return numbers


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
    partitions = []
    for bins in (np.arange(limit), *(np.count_nonzero(supports[:, x], axis=1) for x in sets)):
        size = int(bins.max()) + 1
        summed = np.zeros((size, d))
        np.add.at(summed, bins, law.T)
        partitions.append(Cells(summed.T, np.arange(d), (size,), bins=(bins,)))
    return partitions


def set_cells(oracle: FrequencyOracle, sets: Sequence[Int64Array]) -> Cells | None:
    """Return the cells of disjoint sets, and of the other items.

    None where the law of how many of several items a report supports is not known, or depends on
    the items. Where it does not, all sets of as many items are equally likely.
    """
    d, hits, p = oracle.domain_size, oracle.laws.hits, oracle.p
    if hits is None:
        return None
    without, with_own = hits.beside(d - 1, False), hits.beside(d - 1, True)
    if without is None or with_own is None:
        return None
    types = np.full(d, len(sets))
    for i, items in enumerate(sets):
        types[items] = i
    numbers = np.bincount(types, minlength=len(sets) + 1)
    bins = tuple(_bins(int(r), oracle.q) for r in numbers)
    shape = tuple(int(places[-1]) + 1 for places in bins)
    laws = np.zeros((numbers.size, *shape))
    for kind in np.flatnonzero(numbers):
        is_own = (np.arange(numbers.size) == kind).astype(np.int64)
        for law, own, probability in ((without, 0, 1 - p), (with_own, 1, p)):
            joint = _joint(law, numbers - is_own) * probability
            for axis, places in enumerate(bins):
                intervals = places[own * is_own[axis] : len(places) - (1 - own) * is_own[axis]]
                summed = np.zeros((shape[axis], *np.delete(joint.shape, axis)))
                np.add.at(summed, intervals, np.moveaxis(joint, axis, 0))
                joint = np.moveaxis(summed, 0, axis)
            laws[kind] += joint
    return Cells(laws.reshape(numbers.size, -1), types, shape, tuple(sets), bins)


def _joint(law: FloatArray, numbers: Int64Array) -> FloatArray:
    """Return P(k_1, ...) of how many items of some sets are supported, given that of their sum."""
    log_factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, numbers.sum() + 1))))
    total, log_ways = np.zeros((), np.int64), np.zeros(())
    for n in numbers:
        k = np.arange(n + 1)
        total = np.add.outer(total, k)
        ways = log_factorials[n] - log_factorials[k] - log_factorials[n - k]
        log_ways = np.add.outer(log_ways, ways)
    all_ways = log_factorials[-1] - log_factorials[total] - log_factorials[numbers.sum() - total]
    return np.asarray(law[total] * np.exp(log_ways - all_ways))


def _bins(n: int, q: float) -> Int64Array:
    """Return the interval of each number from 0 to n: of one, or of equal lengths but the ends."""
    k = np.arange(n + 1)
    if n >= _BINS:
        length = max(1.0, 2 * _DEVIATIONS * (np.sqrt(n * q * (1 - q)) + 1) / (_BINS - 2))
        k = np.clip((k - n * q) // length + _BINS // 2, 0, _BINS - 1).astype(np.int64)
    return np.unique(k, return_inverse=True)[1]

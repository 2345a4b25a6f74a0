"""Pairs of reports that share their hash seed, in memory that does not grow with the reports.

At most four million seeds are held and compared. More seeds are hashed into four million bins, and
the pairs in one bin are counted: those that share their seed, and many that do not. Honest seeds
are uniform, so the law of the number of pairs is known in both cases. If a share b of reports has
one seed for every c of them, they add about 1448 b(c - 1) standard deviations in bins, for any
number of reports. Bins hold all reports; a sample of the seeds would miss one seed that many share.
"""

import math

import numpy as np

from ldprecover import counting
from ldprecover.counting.tiles import tiles
from ldprecover.distributions import poisson_quantile, skewed_quantile
from ldprecover.protocols.olh import SEEDS
from ldprecover.types import Int64Array, UInt32Array

_MAX_SEEDS = 1 << 22  # seeds in memory, 16 MB
_BINS = 1 << 22  # bins, 32 MB
_PIECE = 1 << 16  # seeds of a block that is hashed
_RARE = 1000  # with more places for each report, the number of pairs is taken as Poisson


class SeedPairs:
    """Counts how often seeds, or the seeds of a bin, occur among n reports; `+=` adds in place."""

    def __init__(self, seeds: UInt32Array) -> None:
        self.n = len(seeds)
        self._seeds, self._size = [seeds], len(seeds)
        self._bins: Int64Array | None = None

    def __iadd__(self, other: "SeedPairs") -> "SeedPairs":
        self.n += other.n
        self._seeds += other._seeds
        self._size += other._size
        if other._bins is not None:
            if self._bins is None:
                self._bins = other._bins
            else:
                self._bins += other._bins
        if self._size > _MAX_SEEDS:
            self._fold()
        return self

    def counted(self) -> tuple[float, int]:
        """Return the number of pairs, and the number of places for a report: seeds or bins."""
        if self.n > _MAX_SEEDS:
            times = self._fold().astype(np.float64)
            return float((times * (times - 1)).sum() / 2), _BINS
        seeds = np.concatenate(self._seeds)
        seeds.sort()
        # A run of k places where the next seed is the same comes from k + 1 reports.
        same = np.flatnonzero(seeds[1:] == seeds[:-1])
        starts = np.flatnonzero(np.diff(same, prepend=-2) > 1)
        runs = np.diff(np.append(starts, same.size)).astype(np.float64)
        return float((runs * (runs + 1)).sum() / 2), SEEDS

    def _fold(self) -> Int64Array:
        bins = np.zeros(_BINS, np.int64) if self._bins is None else self._bins
        if self._size:
            seeds = np.concatenate(self._seeds)
            for block in tiles((seeds.size, 1), _PIECE):
                piece = seeds[block]
                # Hashed, so that seeds next to each other do not share a bin.
                piece[:] = counting.olh_buckets(piece, np.zeros(1, np.uint32), _BINS)
            seeds.sort()  # counting in order is faster: the bins do not fit into a cache
            bins += counting.grr_counts(seeds, _BINS)
        self._seeds, self._size, self._bins = [], 0, bins
        return bins


def pairs_quantile(level: float, n: int, places: int) -> float:
    """Return a quantile of the number of pairs in one place, for n reports in uniform places.

    Its mean is m = n(n-1)/(2 places), its variance m(1 - 1/places). Its skewness is about
    sqrt(8/places)(1 + places/(2n)), by the third moment of the Poisson-Charlier polynomial of
    degree 2. Rare pairs are taken as a Poisson number, whose skewness is smaller by a share of
    2n/places, here at most 0.002. Otherwise the quantile is that of the gamma law of these moments
    (Pearson III), which is near the normal for four million bins.
    """
    mean = n * (n - 1) / (2 * places)
    if n * _RARE <= places:
        return float(poisson_quantile(level, mean))
    skewness = math.sqrt(8 / places) * (1 + places / (2 * n))
    return mean + math.sqrt(mean * (1 - 1 / places)) * skewed_quantile(level, skewness)

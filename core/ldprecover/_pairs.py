"""Pairs of reports that share their hash seed, in memory that does not grow with the reports.

Up to four million seeds are held and compared. Of more, the seeds are hashed into four million
bins, and the pairs in one bin are counted: those that share their seed, and many that do not.
Honest seeds are uniform, so the law of the number of pairs is known either way. A share b of
reports of which each c have one seed adds about 1448 b(c - 1) standard deviations in bins, whatever
the number of reports.
"""

import math

import numpy as np

from ldprecover import kernels
from ldprecover.laws import poisson_quantile, skewed_quantile
from ldprecover.types import Int64Array, UInt32Array

__all__ = ["SeedPairs", "pairs_quantile"]

_HELD = 1 << 22  # seeds, 16 MB
_BINS = 1 << 22  # 32 MB
_SEEDS = 1 << 32
_RARE = 1000  # places a report, from which on the number of pairs is taken as a Poisson number


class SeedPairs:
    """How often seeds, or the seeds of a bin, occur among n reports. It adds in place."""

    def __init__(self, seeds: UInt32Array) -> None:
        self.n = len(seeds)
        self._held, self._holds = [seeds], len(seeds)
        self._bins: Int64Array | None = None

    def __iadd__(self, other: "SeedPairs") -> "SeedPairs":
        self.n += other.n
        self._held += other._held
        self._holds += other._holds
        if other._bins is not None:
            self._bins = other._bins if self._bins is None else self._bins + other._bins
        if self._holds > _HELD:
            self._fold()
        return self

    def counted(self) -> tuple[float, int]:
        """Return the number of pairs, and how many places there are for a report: seeds or bins."""
        if self.n <= _HELD:
            seeds = np.sort(np.concatenate(self._held))
            starts = np.flatnonzero(np.concatenate([[True], seeds[1:] != seeds[:-1]]))
            return _pairs(np.diff(np.append(starts, seeds.size))), _SEEDS
        return _pairs(self._fold()), _BINS

    def _fold(self) -> Int64Array:
        bins = np.zeros(_BINS, np.int64) if self._bins is None else self._bins
        for seeds in self._held:
            # A hash, for seeds that are near each other are not the same.
            places = kernels.olh_buckets(seeds, np.zeros(1, np.uint32), _BINS)
            np.add.at(bins, places.astype(np.intp), np.int64(1))
        self._held, self._holds, self._bins = [], 0, bins
        return bins


def _pairs(times: Int64Array) -> float:
    return float((times.astype(np.float64) * (times - 1)).sum() / 2)


def pairs_quantile(level: float, n: int, places: int) -> float:
    """Return the quantile of the number of pairs in one place, of n reports in uniform places.

    Its mean is m = n(n-1)/(2 places), its variance m(1 - 1/places), and its skewness about
    sqrt(8/places)(1 + places/(2n)), by the third moment of the Poisson-Charlier polynomial of
    degree 2. Rare pairs are taken as a Poisson number, whose skewness is less by a share 2n/places,
    here 0.002 at most. Of others the quantile is that of the gamma law of these moments (Pearson
    III), which in four million bins is near the normal.
    """
    mean = n * (n - 1) / (2 * places)
    if n * _RARE <= places:
        return float(poisson_quantile(level, mean))
    skewness = math.sqrt(8 / places) * (1 + places / (2 * n))
    return mean + math.sqrt(mean * (1 - 1 / places)) * skewed_quantile(level, skewness)

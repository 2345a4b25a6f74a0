"""Pairs of reports that share their hash seed, in memory that does not grow with the reports.

Up to four million seeds are held and compared. Of more, the seeds are hashed into four million
bins, and the pairs in one bin are counted: those that share their seed, and many that do not.
Honest seeds are uniform, so the law of the number of pairs is known either way. A share b of
reports of which each c have one seed adds about 1448 b(c - 1) standard deviations in bins, whatever
the number of reports. Bins hold all reports: a sample of the seeds would hold fewer, and miss the
one seed that many share.
"""

import math
from typing import Any

import numpy as np

from ldprecover import counting
from ldprecover.laws.distributions import poisson_quantile, skewed_quantile
from ldprecover.types import Int64Array, UInt32Array

_HELD = 1 << 22  # seeds, 16 MB
_BINS = 1 << 22  # 32 MB
_PIECE = 1 << 16  # seeds hashed at once
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
            if self._bins is None:
                self._bins = other._bins
            else:
                self._bins += other._bins
        if self._holds > _HELD:
            self._fold()
        return self

    def counted(self) -> tuple[float, int]:
        """Return the number of pairs, and how many places there are for a report: seeds or bins."""
        if self.n > _HELD:
            times = self._fold().astype(np.float64)
            return float((times * (times - 1)).sum() / 2), _BINS
        seeds = np.concatenate(self._held)
        seeds.sort()
        # Where the next seed is the same, in runs: k such places in a row are of k + 1 reports.
        same = np.flatnonzero(seeds[1:] == seeds[:-1])
        starts = np.flatnonzero(np.diff(same, prepend=-2) > 1)
        runs = np.diff(np.append(starts, same.size)).astype(np.float64)
        return float((runs * (runs + 1)).sum() / 2), _SEEDS

    def _fold(self) -> Int64Array:
        bins = np.zeros(_BINS, np.int64) if self._bins is None else self._bins
        if self._holds:
            seeds = np.concatenate(self._held)
            for start in range(0, seeds.size, _PIECE):
                piece = seeds[start : start + _PIECE]
                # A hash, for seeds that are near each other are not the same.
                piece[:] = counting.olh_buckets(piece, np.zeros(1, np.uint32), _BINS)
            seeds.sort()  # counted in order, for the bins are many more than a cache holds
            bins += counting.grr_counts(seeds, _BINS)
        self._held, self._holds, self._bins = [], 0, bins
        return bins

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: the bins in as few bytes as the greatest needs, mostly one instead of
        eight.
        """
        bins = self._bins
        small = bins if bins is None else bins.astype(np.min_scalar_type(bins.max()))
        return self.__dict__ | {"_bins": small}

    def __setstate__(self, state: dict[str, Any]) -> None:
        bins = state["_bins"]
        self.__dict__ |= state | {"_bins": bins if bins is None else bins.astype(np.int64)}


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

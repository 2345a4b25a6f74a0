"""Spikes: what an attack may add to some of the items, each by chance or the known targets for
sure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.recovery.unmixing.model.grid import Grid
from ldprecover.types import ComplexArray

_EXPONENTIAL = (5, 10, 20, 40, 80, 160, 320)
_NARROW = (*range(3, 13), 14, 16, 18, 20, 23, 26, 30, 35, 40, 80, 160, 320)
_SHAPE = 300  # of the gamma law of narrow spikes
_ALL = 0.9  # probability that the items that are named as targets are all that are attacked
_DENSE, _SPARSE = math.log(2 / 3), math.log(1 / 3)


@dataclass(frozen=True)
class Spikes:
    """About `k` items have a spike: sizes exponential, or `narrow`, nearly equal.

    Each item has one with probability k/d; where `on_targets`, the targets have one each, and as
    many `others` of the k as are not targets are anywhere.
    """

    k: int
    narrow: bool
    log_prior: float
    on_targets: bool = False
    others: int = 0

    def share(self, d: int) -> float:
        """Return the probability that an item has a spike, a target where they are on targets."""
        return 1.0 if self.on_targets else self.k / d

    def share_of_others(self, d: int) -> float:
        """Return the probability that an item has a spike that is no target; where none is, that of
        any.
        """
        return self.others / (d - self.k + self.others) if self.on_targets else self.share(d)

    def transform(self, rho: float, d: int, grid: Grid) -> ComplexArray:
        """Return the Fourier transform of the law of what an item gets, where all get `rho` in
        total.
        """
        return self._of_share(self.share(d), rho, grid)

    def transform_of_others(self, rho: float, d: int, grid: Grid) -> ComplexArray:
        """Return the same for an item that is no target."""
        return self._of_share(self.share_of_others(d), rho, grid)

    def _of_share(self, share: float, rho: float, grid: Grid) -> ComplexArray:
        if rho == 0 or share == 0:
            return np.ones(grid.omega.size, np.complex128)
        mu = rho / self.k
        sizes = _narrow(mu, grid) if self.narrow else _exponential(mu, grid)
        return np.asarray((1 - share) + share * sizes, np.complex128)


NONE = Spikes(1, False, 0.0)
"""No spikes, of total 0."""


def _exponential(mu: float, grid: Grid) -> ComplexArray:
    """Return the transform of the masses in the cells around the points of the grid."""
    edges = (np.arange(int(grid.top / grid.step) + 1) - 0.5) * grid.step
    edges[0] = 0.0
    masses = np.exp(-edges / mu) * -np.expm1(-np.diff(edges, append=edges[-1] + grid.step) / mu)
    return np.asarray(np.fft.rfft(masses, grid.size), np.complex128)


def _narrow(mu: float, grid: Grid) -> ComplexArray:
    """Return (1 + i w mu/300)^-300; 0 where the spikes would lie beyond the grid."""
    if mu >= grid.top:
        return np.zeros(grid.omega.size, np.complex128)
    transform = np.zeros(grid.omega.size, np.complex128)
    u = grid.omega * (mu / _SHAPE)
    u = u[: np.searchsorted(u, 1.0)]  # the rest is below 2^-150: numbers so small are slow, too
    power = 1 / (1 + 1j * u)
    found = np.ones_like(power)
    left = _SHAPE
    while left:  # by squaring: numpy's own power of complex numbers takes ten times as long
        if left & 1:
            found = found * power
        left >>= 1
        power = power * power
    transform[: u.size] = found
    return transform


def on_some(d: int, *, uniform: bool) -> tuple[Spikes, ...]:
    """Return what an attack may add to items that nobody knows: to many of them, or to few.

    Without the equal spikes on all items, which are a shift, unless `uniform`.
    """
    dense = [(k, narrow) for k in (d // 2, d) for narrow in (False, True)]
    few = [(k, False) for k in _EXPONENTIAL if k < 0.4 * d] + [
        (k, True) for k in _NARROW if k < 0.4 * d
    ]
    found = (*_priced(dense, _DENSE), *_priced(few, _SPARSE))
    return tuple(each for each in found if uniform or not (each.narrow and each.k == d))


def on_targets(targets: Sequence[int], d: int, *, all_known: bool) -> tuple[Spikes, ...]:
    """Return what an attack may add to its targets; where these may not be all, to some other items
    too.
    """
    t = len(targets)
    more = () if all_known else tuple(k for k in (max(t, 3), 4 * t) if k <= d - t)
    alone = math.log(_ALL if more else 1) - math.log(2)
    beside = math.log(1 - _ALL) - math.log(2 * max(len(more), 1))
    return tuple(
        Spikes(t + others, narrow, beside if others else alone, True, others)
        for others in (0, *more)
        for narrow in (False, True)
    )


def _priced(kinds: list[tuple[int, bool]], log_prior: float) -> list[Spikes]:
    return [Spikes(k, narrow, log_prior - math.log(len(kinds))) for k, narrow in kinds]

"""Spikes: what some items, random or known ones, have beyond the law of all.

Malicious reports add them on purpose, or users hold them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.distributions import power
from ldprecover.recovery.unmixing.model.density import Grid
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import ComplexArray


@dataclass(frozen=True)
class Spikes:
    """About `k` items have a spike, of exponential sizes or, if `narrow`, of nearly equal ones.

    Each item has one with probability k/d. If `on_targets`, every target has one, and `others` of
    the k spikes are on items that are no targets.
    """

    k: int
    narrow: bool
    log_prior: float
    on_targets: bool = False
    others: int = 0

    def share(self, d: int, *, others: bool = False) -> float:
        """Return the probability that an item has a spike: a target, or one of the `others`.

        All items are alike if the spikes are not on targets.
        """
        if not self.on_targets:
            return self.k / d
        return self.others / (d - self.k + self.others) if others else 1.0

    def transform(self, rho: float, d: int, grid: Grid, *, others: bool = False) -> ComplexArray:
        """Return the Fourier transform of the law of an item's spike; all spikes total `rho`.

        With `others` it is that of an item that is no target.
        """
        share = self.share(d, others=others)
        if rho == 0 or share == 0:
            return np.ones(grid.omega.size, np.complex128)
        shape = PRIOR.equal_spike_shape if self.narrow else 1
        return (1 - share) + share * _gamma(rho / self.k, shape, grid)


NONE = Spikes(1, False, 0.0)
"""The spikes of a relation without any."""


def _gamma(mu: float, shape: int, grid: Grid) -> ComplexArray:
    """Return the transform (1 + i w mu/shape)^-shape of a gamma law; 0 beyond the grid."""
    if mu >= grid.top:
        return np.zeros(grid.omega.size, np.complex128)
    u = grid.omega * (mu / shape)
    if shape > 1:
        u = np.minimum(u, 1.0)  # beyond, it is below 2^-150, and such small numbers are slow
    return power(np.asarray(1 / (1 + 1j * u), np.complex128), shape)


def on_some(d: int) -> list[Spikes]:
    """Return the spikes on unknown items: on many of the d items, or on few.

    Equal spikes on all items are left out: they are a shift.
    """
    many = [(d // 2, False), (d // 2, True), (d, False)]
    numbers = [(k, False) for k in PRIOR.exponential_spikes]
    numbers += [(k, True) for k in PRIOR.equal_spikes]
    few = [(k, narrow) for k, narrow in numbers if k < PRIOR.few_of_items * d]
    shared = [(many, PRIOR.many_spikes), (few, 1 - PRIOR.many_spikes)]
    return [
        Spikes(k, narrow, math.log(probability / len(kinds)))
        for kinds, probability in shared
        for k, narrow in kinds
    ]


def on_targets(targets: Sequence[int], d: int, *, all_known: bool) -> list[Spikes]:
    """Return the spikes on the targets, and unless `all_known` on as many other items too."""
    t = len(targets)
    more = max(3, t)
    alone = 1.0 if all_known or more > d - t else PRIOR.all_targets_named
    return [
        Spikes(t + others, narrow, math.log(probability / 2), True, others)
        for others, probability in ((0, alone), (more, 1 - alone))
        for narrow in (False, True)
        if probability
    ]

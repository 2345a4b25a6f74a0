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

    def share(self, d: int) -> float:
        """Return the probability that an item has a spike: any item, or any target."""
        return 1.0 if self.on_targets else self.k / d

    def share_of_others(self, d: int) -> float:
        """Return the probability that an item that is no target has a spike."""
        return self.others / (d - self.k + self.others) if self.on_targets else self.share(d)

    def transform(self, rho: float, d: int, grid: Grid, *, others: bool = False) -> ComplexArray:
        """Return the Fourier transform of the law of an item's spike; all spikes total `rho`.

        With `others` it is that of an item that is no target.
        """
        share = self.share_of_others(d) if others else self.share(d)
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


def on_some(d: int, *, uniform: bool) -> tuple[Spikes, ...]:
    """Return the spikes on unknown items: on many of the d items, or on few.

    `uniform` includes equal spikes on all items: where shifts are searched they are a shift.
    """
    many = [(k, narrow) for k in (d // 2, d) for narrow in (False, True)]
    limit = PRIOR.few_of_items * d
    few = [(k, False) for k in PRIOR.exponential_spikes if k < limit]
    few += [(k, True) for k in PRIOR.equal_spikes if k < limit]
    spikes = (*_with_priors(many, PRIOR.many_spikes), *_with_priors(few, 1 - PRIOR.many_spikes))
    return tuple(each for each in spikes if uniform or not (each.narrow and each.k == d))


def on_targets(targets: Sequence[int], d: int, *, all_known: bool) -> tuple[Spikes, ...]:
    """Return the spikes on the targets, and unless `all_known` on some other items too."""
    t = len(targets)
    more = () if all_known else tuple(k for k in (max(t, 3), 4 * t) if k <= d - t)
    alone = math.log(PRIOR.all_targets_named if more else 1) - math.log(2)
    beside = math.log(1 - PRIOR.all_targets_named) - math.log(2 * max(len(more), 1))
    return tuple(
        Spikes(t + others, narrow, beside if others else alone, True, others)
        for others in (0, *more)
        for narrow in (False, True)
    )


def _with_priors(kinds: list[tuple[int, bool]], probability: float) -> list[Spikes]:
    """Return spikes of these numbers and kinds, which share the probability evenly."""
    return [Spikes(k, narrow, math.log(probability) - math.log(len(kinds))) for k, narrow in kinds]

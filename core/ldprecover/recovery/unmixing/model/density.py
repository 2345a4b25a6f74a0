"""Densities at the estimates: sums of independent parts, as products of Fourier transforms.

Items with equal noise share an inverse transform.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ldprecover.types import BoolArray, ComplexArray, FloatArray, Int64Array

_LEAST, _MOST = 256, 16384  # points of a grid
_FEW = 1024  # points of a grid that is no effort
_KNOWN = 30  # deviations above zero from which the noise of an estimate hardly matters
_REACH = 7  # standard deviations of noise kept apart on the circle: 1e-12 wraps around
_STEP = math.log(1.1)  # of factors of deviations


@dataclass(frozen=True)
class Grid:
    """`size` points on a circle, `step` apart. Frequencies and spikes sum to at most `top`."""

    step: float
    size: int
    top: float

    @cached_property
    def omega(self) -> FloatArray:
        """The angular frequencies of a real transform, size/2 + 1 of them."""
        return np.asarray(2 * np.pi * np.fft.rfftfreq(self.size, self.step), np.float64)

    def damping(self, sd: float) -> FloatArray:
        """Return the transform of normal noise, with a deviation of at least one step."""
        return np.exp(-((max(sd, self.step) * self.omega) ** 2) / 2)


def grid_over(low: float, high: float, least: float, largest: float, limit: int = _MOST) -> Grid:
    """Return a grid for values from `low` to `high` with noise of deviation `least` to `largest`.

    Its step is a third of the least deviation, unless that takes more than `limit` points.
    """
    top = max(high, 0.0) + _REACH * largest
    need = 2 * _REACH * largest + max(0.0, -low) + 2 * top
    step, size = least / 3, _LEAST
    while step * size < need and size < limit:
        size *= 2
    return Grid(max(step, need / size), size, top)


@dataclass(frozen=True, eq=False)
class NoiseGroup:
    """Items of one kind with noise of one deviation; `damping` is the transform of its law."""

    kind: int
    items: Int64Array
    damping: FloatArray
    grid: Grid

    def densities(self, x: FloatArray, transforms: ComplexArray) -> FloatArray:
        """Return the densities at the items' x with noise, one row for each transform.

        x has one value for each of the d items.
        """
        grid, position = self.grid, x[self.items] / self.grid.step
        low = np.floor(position).astype(np.int64)
        dense = np.fft.irfft(transforms * (self.damping / grid.step), grid.size)
        densities = dense[:, low % grid.size]
        densities += (position - low) * (dense[:, (low + 1) % grid.size] - densities)
        return densities

    def log_likelihoods(self, x: FloatArray, transforms: ComplexArray, floor: float) -> FloatArray:
        """Return the log-likelihoods of the items' x, one for each transform.

        Densities are at least `floor`. Of more items than the grid has points, those of one cell of
        the grid are taken to be at its middle.
        """
        grid, group, weights = self.grid, self, np.ones(1)
        if self.items.size > grid.size:
            cells, numbers = np.unique(np.floor(x[self.items] / grid.step), return_counts=True)
            x, weights = (cells + 0.5) * grid.step, numbers.astype(np.float64)
            group = replace(self, items=np.arange(cells.size))
        log_densities = np.log(np.maximum(group.densities(x, transforms), 0.0) + floor)
        return np.asarray((log_densities * weights).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the items, whose densities are computed on one grid, group by group.

    Where these `are_known`, their noise is small beside their estimates, and so may be beside the
    grid's step.
    """

    grid: Grid
    groups: tuple[NoiseGroup, ...]
    are_known: bool


def parts(x: FloatArray, sd: FloatArray, kinds: Int64Array, room: float) -> Iterator[Part]:
    """Yield all items, or those near zero and those far above as two parts.

    x are their values with noise sd, which a shift raises by up to `room`. Two grids of few points
    then take the place of one with many, fine enough for the noise and as long as the largest item.
    """
    grid = _grid_for(x, sd, room)
    if grid.size <= _FEW:
        yield _part(grid, np.ones(x.size, np.bool_), sd, kinds, are_known=False)
        return
    is_far = x > np.maximum(_KNOWN * sd, grid.top / _KNOWN)
    for inside, limit in ((~is_far, _MOST), (is_far, _FEW)):
        if inside.any():
            grid = _grid_for(x[inside], sd[inside], room, limit)
            yield _part(grid, inside, sd, kinds, are_known=limit == _FEW)


def _grid_for(x: FloatArray, sd: FloatArray, room: float, limit: int = _MOST) -> Grid:
    return grid_over(float(x.min()), float(x.max()) + room, float(sd.min()), float(sd.max()), limit)


def _part(
    grid: Grid, inside: BoolArray, sd: FloatArray, kinds: Int64Array, *, are_known: bool
) -> Part:
    """Return the items `inside`, in groups of one kind and of equal noise."""
    levels = np.maximum(sd, grid.step)
    groups = [
        NoiseGroup(kind, np.flatnonzero(of_kind & (levels == level)), grid.damping(level), grid)
        for kind in np.unique(kinds[inside]).tolist()
        for of_kind in [inside & (kinds == kind)]
        for level in np.unique(levels[of_kind]).tolist()
    ]
    return Part(grid, tuple(groups), are_known)


def rounded(factors: FloatArray) -> FloatArray:
    """Return factors of deviations, rounded to powers of 1.1: then few deviations are distinct."""
    return np.exp(_STEP * np.round(np.log(factors) / _STEP))

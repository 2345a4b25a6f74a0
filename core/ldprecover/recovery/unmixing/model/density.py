"""Densities at the estimates: sums of independent parts, as products of Fourier transforms.

Items with equal noise share an inverse transform.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldprecover.types import BoolArray, ComplexArray, FloatArray, Int64Array

_LEAST, _MOST = 256, 16384  # points of a grid
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


def grid_over(low: float, high: float, least: float, largest: float) -> Grid:
    """Return a grid for values from `low` to `high` with noise of deviation `least` to `most`.

    Its step is a third of the least deviation, unless that takes more than 16,384 points.
    """
    top = max(high, 0.0) + _REACH * largest + 0.05
    need = 2 * _REACH * largest + max(0.0, -low) + 2 * top
    step, size = least / 3, _LEAST
    while step * size < need and size < _MOST:
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


def groups(sd: FloatArray, grid: Grid, kinds: BoolArray | Int64Array) -> Iterator[NoiseGroup]:
    """Yield the groups of items of one kind and of equal noise."""
    for kind in np.unique(kinds):
        for level in np.unique(sd[kinds == kind]):
            items = np.flatnonzero((kinds == kind) & (sd == level))
            yield NoiseGroup(int(kind), items, grid.damping(float(level)), grid)


def rounded(factors: FloatArray) -> FloatArray:
    """Return factors of deviations, rounded to powers of 1.1: then few deviations are distinct."""
    return np.exp(_STEP * np.round(np.log(factors) / _STEP))

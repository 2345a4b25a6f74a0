"""Densities at the estimates: sums of independent parts, as products of Fourier transforms.

Items with equal noise share an inverse transform. If they are few and the products are many, the
inverse transform is summed at these items alone.
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
_WORTH = 4  # transforms per item above which the direct sum is faster


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

    @cached_property
    def roots(self) -> ComplexArray:
        """The `size` roots of unity."""
        return np.exp(2j * np.pi * np.arange(self.size) / self.size)

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
    """Items with noise of one deviation; `damping` is the transform of its law."""

    items: Int64Array
    damping: FloatArray
    grid: Grid

    def at(self, x: FloatArray, transforms: int) -> "GridPositions":
        """Return the place of the densities at x (one value for each of the d items).

        `transforms` is the number of densities that will be asked for.
        """
        position = x[self.items] / self.grid.step
        cell = np.floor(position)
        above = position - cell
        low = cell.astype(np.int64) % self.grid.size
        direct = self.items.size * _WORTH <= transforms
        basis = self._basis(low, above) if direct else None
        return GridPositions(self, low, (low + 1) % self.grid.size, above, basis)

    def _basis(self, low: Int64Array, above: FloatArray) -> FloatArray:
        """Return the matrix whose product with a transform is the direct sum at the items."""
        grid = self.grid
        k = np.arange(grid.omega.size)
        turn = grid.roots[np.outer(k, low) % grid.size]
        turn *= (1 - above) + above * grid.roots[k, None]
        weights = self.damping * (2 / (grid.size * grid.step))
        weights[0] /= 2
        weights[-1] /= 2
        turn *= weights[:, None]
        return np.stack([turn.real, -turn.imag], axis=1).reshape(-1, low.size)


@dataclass(frozen=True, eq=False)
class GridPositions:
    """The positions of a group's items: between the grid points `low` and `high`, at `above`."""

    group: NoiseGroup
    low: Int64Array
    high: Int64Array
    above: FloatArray
    basis: FloatArray | None

    @property
    def items(self) -> Int64Array:
        """The items of the group."""
        return self.group.items

    def densities(self, transforms: ComplexArray) -> FloatArray:
        """Return the densities at the group's items with noise, one row for each transform."""
        if self.basis is not None:
            return np.ascontiguousarray(transforms).view(np.float64) @ self.basis
        grid = self.group.grid
        dense = np.fft.irfft(transforms * (self.group.damping / grid.step), grid.size)
        densities = dense[:, self.low]
        densities += self.above * (dense[:, self.high] - densities)
        return densities


def groups(sd: FloatArray, grid: Grid, kinds: BoolArray | Int64Array) -> Iterator[NoiseGroup]:
    """Yield the groups of items of one kind and of equal noise."""
    for kind in np.unique(kinds):
        for level in np.unique(sd[kinds == kind]):
            items = np.flatnonzero((kinds == kind) & (sd == level))
            yield NoiseGroup(items, grid.damping(float(level)), grid)


def rounded(factors: FloatArray) -> FloatArray:
    """Return factors of deviations, rounded to powers of 1.1: then few deviations are distinct."""
    return np.exp(_STEP * np.round(np.log(factors) / _STEP))

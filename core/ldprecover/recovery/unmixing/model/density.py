"""Densities at the estimates: sums of independent parts, made as products of transforms, with the
noise of each item.

Items whose noise is the same share an inverse transform. Where they are few and the products many,
each is summed at these items alone instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.recovery.unmixing.model.grid import Grid
from ldprecover.types import BoolArray, ComplexArray, FloatArray, Int64Array

_WORTH = 4  # transforms for each item from which on it is worth while to prepare the sum at each


@dataclass(frozen=True, eq=False)
class Group:
    """Some of the items, all with noise of one deviation: `damping` is the transform of its law."""

    items: Int64Array
    damping: FloatArray
    grid: Grid

    def at(self, x: FloatArray, transforms: int) -> "Place":
        """Return where the densities at x are found, x one number for each of all the items, of so
        many transforms.
        """
        position = x[self.items] / self.grid.step
        cell = np.floor(position)
        above = position - cell
        low = cell.astype(np.int64) % self.grid.size
        direct = self.items.size * _WORTH <= transforms
        basis = self._basis(low, above) if direct else None
        return Place(self, low, (low + 1) % self.grid.size, above, basis)

    def _basis(self, low: Int64Array, above: FloatArray) -> FloatArray:
        """Return the matrix that a transform is multiplied by: what `Place.densities` interpolates,
        summed directly.
        """
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
class Place:
    """Where the densities of a group are found: between two points of the grid, `above` the
    lower.
    """

    group: Group
    low: Int64Array
    high: Int64Array
    above: FloatArray
    basis: FloatArray | None

    def densities(self, transforms: ComplexArray) -> FloatArray:
        """Return the densities at the group's items, a row for each transform, noise added."""
        if self.basis is not None:
            found: FloatArray = np.ascontiguousarray(transforms).view(np.float64) @ self.basis
            return found
        grid = self.group.grid
        dense = np.fft.irfft(transforms * (self.group.damping / grid.step), grid.size)
        found = dense[:, self.low]
        found += self.above * (dense[:, self.high] - found)
        return found


def groups(sd: FloatArray, grid: Grid, among: Sequence[BoolArray]) -> Iterator[Group]:
    """Yield the items by their noise, those of each of the disjoint sets `among` apart."""
    for members in among:
        for level in np.unique(sd[members]):
            items = np.flatnonzero(members & (sd == level))
            yield Group(items, grid.damping(float(level)), grid)

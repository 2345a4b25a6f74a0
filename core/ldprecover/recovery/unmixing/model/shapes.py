"""Laws that the frequencies of a round's items may follow: shapes of mean 1/d, or free levels.

Shapes are generic: the same for all data. One may have a share of items that nobody holds.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ldprecover.recovery.unmixing.model.density import Grid
from ldprecover.types import FloatArray

_STEPS = 60  # of the EM algorithm; more of them fit the noise
_NODES_PER_DEVIATION = 3
_MOST_NODES = 3000  # beyond, nodes are further apart
_FAINT = 0.02  # expected items of a node, below which it has none
_LEAST_DENSITY = 1e-300
_NODES = 301  # of a law, before it is spread to half the grid's step
_ZEROS = (0.0, 0.5, 0.85)  # shares of items that nobody holds
_HALVINGS = 60  # of a logarithm: its scale is exact to double precision


@dataclass(frozen=True, eq=False)
class Shape:
    """A law of a frequency: a density between rising nodes, and a probability `zero` of 0.

    The `weights` of the nodes sum to 1 - zero. `log_prior` is the log-probability of the shape
    within its list.
    """

    nodes: FloatArray
    weights: FloatArray
    zero: float = 0.0
    log_prior: float = 0.0

    def second_moment(self) -> float:
        """Return E f^2."""
        return float(self.weights @ self.nodes**2)

    def masses(self, a: float, grid: Grid, powers: int) -> FloatArray:
        """Return the masses of a f on the grid, times f^j, as one row for each j < `powers`.

        The mean weight of two nodes is spread evenly between them: bare nodes would be further
        apart than the noise, and estimates would jump between them. A mass between two points of
        the grid is split between them.
        """
        f, g = self._spread(grid.step)
        position = a * f
        inside = position < grid.top
        f, g, position = f[inside], g[inside], position[inside] / grid.step
        cell = position.astype(np.int64)
        above = position - cell
        rows = np.empty((powers, grid.size))
        for j in range(powers):
            rows[j] = np.bincount(cell, g * (1 - above), grid.size) + np.bincount(
                cell + 1, g * above, grid.size
            )
            g = g * f
        rows[0, 0] += self.zero
        return rows

    def _spread(self, step: float) -> tuple[FloatArray, FloatArray]:
        """Return points of the law at most half a step apart, and their weights."""
        if self.nodes.size < 2:
            return self.nodes.copy(), self.weights.copy()
        between = (self.weights[:-1] + self.weights[1:]) / 2
        between[0] += self.weights[0] / 2
        between[-1] += self.weights[-1] / 2
        width = np.diff(self.nodes)
        points = (2 * width / step).astype(np.int64) + 1
        which = np.repeat(np.arange(width.size), points)
        place = np.arange(which.size) - np.repeat(np.cumsum(points) - points, points) + 0.5
        share = 1 / points
        return self.nodes[which] + place * (width * share)[which], (between * share)[which]


def lognormal(s: float, zero: float, d: int) -> Shape:
    """Return a lognormal law with deviation s of the logarithm, truncated at 1; `zero` is P(0)."""
    x = np.linspace(-5, 5, _NODES)
    return _scaled(np.exp(s * x), np.exp(-(x**2) / 2), zero, d)


def power_law(s: float, d: int) -> Shape:
    """Return the law of frequencies proportional to rank^-s, for d ranks."""
    u = np.exp(np.linspace(np.log(0.5), np.log(d + 0.5), _NODES))
    return _scaled(u[::-1] ** -s, u[::-1].copy(), 0.0, d)


def falling(s: float, d: int) -> Shape:
    """Return the law of frequencies proportional to the s-th power of a uniform number: there is a
    largest one, and many items are near it if s is small.
    """
    u = np.linspace(0.0, 1.0, _NODES)[1:]
    return _scaled(u**s, np.ones(u.size), 0.0, d)


def _scaled(f: FloatArray, weights: FloatArray, zero: float, d: int) -> Shape:
    """Return the shape with nodes proportional to the rising f, scaled to a mean of 1/d."""
    mass, moment = np.cumsum(weights), np.cumsum(weights * f)
    low, high = -30.0, 60.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = int(np.searchsorted(f, np.exp(-middle), side="right"))  # nodes up to 1
        mean = np.exp(middle) * moment[below - 1] / mass[below - 1] if below else np.inf
        low, high = (middle, high) if (1 - zero) * mean < 1 / d else (low, middle)
    nodes = np.exp(low) * f
    nodes, weights = nodes[nodes <= 1], weights[nodes <= 1]
    return Shape(nodes, weights * ((1 - zero) / weights.sum()), zero)


AT_ZERO = Shape(np.zeros(1), np.ones(1))
"""The law of the distances from a history whose spread is part of the noise."""


@lru_cache(maxsize=16)
def shapes(d: int, *, bounded: bool = False) -> tuple[Shape, ...]:
    """Return the shapes, with even log priors; `bounded` adds those with a largest frequency."""
    listed = [lognormal(s, zero, d) for s in (1.0, 1.5, 2.0, 3.0) for zero in _ZEROS]
    listed += [power_law(s, d) for s in (0.75, 1.0, 1.25, 1.5)]
    listed += [falling(s, d) for s in (0.5, 1.0, 2.0, 4.0) if bounded]
    # A law under which fewer than two items are held is no law of a round.
    listed = [shape for shape in listed if d * (1 - shape.zero) >= 2]
    return tuple(replace(shape, log_prior=-math.log(len(listed))) for shape in listed)


def free_levels(z: FloatArray, sd: FloatArray) -> Shape:
    """Return the law of any levels under which d estimates z with noise sd are the most likely.

    It shows that the frequencies need no attack where they follow none of the shapes (Kiefer and
    Wolfowitz, 1956). The weights of evenly spaced nodes are found by expectation maximisation. Each
    is spread by the error of the mean of the items around it, as bare levels would be more certain
    than the estimates they come from. The log prior is minus ln d for each level: what it costs to
    choose it among the data.
    """
    d, usual = z.size, float(np.median(sd))
    top = max(float(z.max()), 0.0) + usual
    step = max(usual / _NODES_PER_DEVIATION, top / _MOST_NODES)
    nodes = np.arange(0.0, top + step, step)
    # Estimates closer than nodes are one.
    places, first, number = np.unique(np.rint(z / step), return_index=True, return_counts=True)
    deviations = np.maximum(sd[first], step)
    kernel = _normal(step * places[:, None] - nodes, deviations[:, None])
    weights = np.full(nodes.size, 1 / nodes.size)
    for _ in range(_STEPS):
        density = np.maximum(kernel @ weights, _LEAST_DENSITY)
        weights *= (number / density) @ kernel / d
    present = weights * d > _FAINT
    around = np.append(np.insert(weights, 0, 0.0), 0.0)
    levels = np.count_nonzero(present & (weights >= around[:-2]) & (weights > around[2:]))

    centres, items = nodes[present], weights[present] * d
    widths = np.interp(centres, step * places, deviations)
    near = np.exp(-(((centres[:, None] - centres) / widths[:, None]) ** 2) / 2) @ items
    widths = np.maximum(widths / np.sqrt(np.maximum(near, 1.0)), step / 2)
    spread = _normal(centres[:, None] - nodes, widths[:, None])
    smooth = items @ (spread / spread.sum(axis=1, keepdims=True))
    return Shape(np.minimum(nodes, 1.0), smooth / smooth.sum(), log_prior=-levels * math.log(d))


def _normal(x: FloatArray, sd: FloatArray) -> FloatArray:
    """Return the densities of normal laws of mean 0 at x."""
    return np.exp(-((x / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))

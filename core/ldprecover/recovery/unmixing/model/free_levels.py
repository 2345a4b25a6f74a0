"""The law of any levels under which the estimates are most likely (Kiefer and Wolfowitz, 1956).

It has no shape: where the frequencies of a round follow none of the listed shapes, it shows that
they need no attack for it.
"""

import math
from dataclasses import dataclass

import numpy as np

from ldprecover.recovery.unmixing.model.shapes import Shape
from ldprecover.types import FloatArray

_STEPS = 60  # of the EM algorithm; more of them fit the noise
_NODES_PER_DEVIATION = 3
_MOST_NODES = 3000  # beyond, nodes are further apart
_FAINT = 0.02  # expected items of a node, below which it has none
_LEAST_DENSITY = 1e-300


@dataclass(frozen=True, eq=False)
class FreeLevels:
    """A density between evenly spaced `nodes`, by its `weights`, and the likelihood of d estimates.

    `log_prior` is minus ln d for each level: what it costs to choose it among the data.
    """

    nodes: FloatArray
    weights: FloatArray
    log_likelihood: float
    log_prior: float

    @property
    def shape(self) -> Shape:
        """The law of frequencies, up to 1, whose mean is that of the estimates."""
        return Shape(np.minimum(self.nodes, 1.0), self.weights, log_prior=self.log_prior)


def free_levels(z: FloatArray, sd: FloatArray, least: float = 0.0) -> FreeLevels:
    """Return the free levels of at least `least` of the estimates z with noise sd.

    The weights of evenly spaced nodes are found by expectation maximisation. Each is spread by the
    error of the mean of the items around it, as bare levels would be more certain than the
    estimates they come from.
    """
    d, usual = z.size, float(np.median(sd))
    top = max(float(z.max()), least) + usual
    step = max(usual / _NODES_PER_DEVIATION, (top - least) / _MOST_NODES)
    nodes = np.arange(least, top + step, step)
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
    smooth /= smooth.sum()
    density = np.maximum(kernel @ smooth, _LEAST_DENSITY)
    return FreeLevels(nodes, smooth, float(number @ np.log(density)), -levels * math.log(d))


def _normal(x: FloatArray, sd: FloatArray) -> FloatArray:
    """Return the densities of normal laws of mean 0 at x."""
    return np.exp(-((x / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))

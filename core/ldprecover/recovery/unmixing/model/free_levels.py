"""The law of any levels under which the estimates are most likely (Kiefer and Wolfowitz, 1956).

It has no shape: where the frequencies of a round follow none of the listed shapes, it shows that
they need no attack for it.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ldprecover.recovery.unmixing.model.shapes import Shape
from ldprecover.types import FloatArray

_STEPS = 60  # of the EM algorithm; more of them fit the noise
_NODES_PER_DEVIATION = 3
_MOST_NODES, _MOST_ITEMS = 3000, 4000  # beyond, nodes are further apart, and near items are one
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

    def shape(self, d: int) -> Shape:
        """Return the law of d frequencies, which is this one scaled to a mean of 1/d."""
        nodes = self.nodes / (d * float(self.nodes @ self.weights))
        inside = nodes <= 1
        weights = self.weights[inside] / self.weights[inside].sum()
        return Shape(nodes[inside], weights, 0.0, 0.0, d, self.log_prior)


def free_levels(z: FloatArray, sd: FloatArray, least: float = 0.0) -> FreeLevels:
    """Return the free levels of at least `least` of the estimates z with noise sd.

    The weights of evenly spaced nodes are found by expectation maximisation. Nodes side by side are
    one level. It is spread by the error of its mean, as bare levels would be more certain than
    the estimates they come from.
    """
    d, usual = z.size, float(np.median(sd))
    values, deviations, multiplicity = _merged(z, sd)
    step = usual / _NODES_PER_DEVIATION
    top = max(float(z.max()), least) + usual
    step = max(step, (top - least) / _MOST_NODES)
    nodes = np.arange(least, top + step, step)
    deviations = np.maximum(deviations, step)
    scaled = (values[:, None] - nodes) / deviations[:, None]
    kernel = np.exp(-(scaled**2) / 2) / (deviations[:, None] * math.sqrt(2 * math.pi))

    weights = np.full(nodes.size, 1 / nodes.size)
    for _ in range(_STEPS):
        density = np.maximum(kernel @ weights, _LEAST_DENSITY)
        weights *= (multiplicity / density) @ kernel / d
    items = weights * d

    smooth, levels = np.zeros(nodes.size), 0
    present = np.flatnonzero(items > _FAINT)
    runs = np.split(present, np.flatnonzero(np.diff(present) > 2) + 1)
    edges = [(before[-1] + after[0] + 1) // 2 for before, after in pairwise(runs)]
    for run, around in zip(runs, np.split(items, edges), strict=True):
        number = float(around.sum())
        fullest = nodes[run[items[run].argmax()]]
        deviation = float(deviations[np.abs(values - fullest).argmin()])
        levels += 1 + int((nodes[run[-1]] - nodes[run[0]]) / (2 * deviation))
        width = max(deviation / math.sqrt(number), step / 2)
        spread = np.exp(-(((nodes - nodes[run][:, None]) / width) ** 2) / 2)
        shares = items[run] * (number / items[run].sum())
        smooth += shares @ (spread / spread.sum(axis=1, keepdims=True))
    smooth /= smooth.sum()
    density = np.maximum(kernel @ smooth, _LEAST_DENSITY)
    return FreeLevels(nodes, smooth, float(multiplicity @ np.log(density)), -levels * math.log(d))


def _merged(z: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sorted estimates and deviations, neighbours merged, and how many each is of."""
    order = np.argsort(z)
    starts = np.arange(0, z.size, -(-z.size // _MOST_ITEMS))
    multiplicity = np.diff(starts, append=z.size).astype(np.float64)
    values = np.add.reduceat(z[order], starts) / multiplicity
    deviations = np.add.reduceat(sd[order], starts) / multiplicity
    return values, deviations, multiplicity

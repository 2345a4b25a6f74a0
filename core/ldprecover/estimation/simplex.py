"""Euclidean projection on the probability simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector
from ldprecover.types import FloatArray


def project_simplex(x: ArrayLike) -> FloatArray:
    """Return the point of {y : y >= 0, sum y = 1} nearest to the vector x.

    It is max(x - tau, 0) for the one tau that makes it sum to 1: the limit of the refining loop
    of Algorithm 1 (paper, V-D), found by sorting (Held, Wolfe and Crowder 1974) in O(d log d).
    Adding a constant to x changes nothing. Raises ParameterError unless x is a non-empty vector
    of finite numbers.

        project_simplex([0.8, 0.4, -0.2])  # [0.7, 0.3, 0.0]
    """
    values = finite_vector(x, "x")
    with np.errstate(
        over="ignore"
    ):  # further below the maximum than a double reaches is still "far below"
        below = values - values.max()
    # The largest entry alone reaches 1 at tau = -1, so tau is in [-1, 0) and only entries above -1
    # can end positive: the sums stay small whatever the size of x.
    candidates = np.sort(below[below > -1])[::-1]
    ranks = np.arange(1, candidates.size + 1)
    taus = (np.cumsum(candidates) - 1) / ranks
    positive = int(np.flatnonzero(candidates > taus)[-1]) + 1
    # tau = (sum of the kept - 1)/kept, taken from the least of them: what the others exceed it by
    # sums to less than 1, while the running sum of many items has lost digits.
    least = candidates[positive - 1]
    margin = (1 - (candidates[:positive] - least).sum()) / positive
    return np.maximum((below - least) + margin, 0.0)

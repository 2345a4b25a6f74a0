"""Error metrics: how far estimates are from the truth, and what an attacker gained."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector
from ldprecover.errors import ParameterError
from ldprecover.items import target_indices
from ldprecover.types import FloatArray


def mse(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean squared error (1/d) sum_v (estimate(v) - truth(v))^2 (paper, VI-B).

    The truth of the paper is f_X, the frequencies of the items of genuine users. Raises
    ParameterError unless both are finite vectors of one length.
    """
    difference = finite_vector(estimate, "estimate") - _like(estimate, truth, "truth")
    return float(np.mean(difference**2))


def frequency_gain(estimate: ArrayLike, genuine: ArrayLike, targets: Iterable[int]) -> float:
    """Return FG, the sum over the targets of estimate(t) - genuine(t).

    `genuine` is f~_X~, estimated from the genuine reports alone. A positive value is the attacker's
    gain, a negative one is below genuine. This is the sign in which the paper discusses its results
    (VI-C); its formula prints the difference the other way round. Repeated targets count once.
    Raises ParameterError for an index outside the vectors, which must be finite and of one length.
    """
    gain = finite_vector(estimate, "estimate") - _like(estimate, genuine, "genuine")
    return float(gain[list(target_indices(targets, gain.size))].sum())


def _like(estimate: ArrayLike, values: ArrayLike, name: str) -> FloatArray:
    vector = finite_vector(values, name)
    if vector.size != np.size(estimate):
        raise ParameterError(
            f"estimate and {name} must be of one length, not {np.size(estimate)} and {vector.size}"
        )
    return vector

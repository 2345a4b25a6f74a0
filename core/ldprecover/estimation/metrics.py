"""Error metrics: how far estimates are from the truth, and what an attacker gained."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector
from ldprecover.items import target_indices


def mse(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean squared error (1/d) sum_v (estimate(v) - truth(v))^2 (paper, VI-B).

    The truth of the paper is f_X, the frequencies of the items of genuine users. Raises
    ParameterError unless both are finite vectors of one length.
    """
    f = finite_vector(estimate, "estimate")
    return float(np.mean((f - finite_vector(truth, "truth", f.size)) ** 2))


def frequency_gain(estimate: ArrayLike, genuine: ArrayLike, targets: Iterable[int]) -> float:
    """Return FG, the sum over the targets of estimate(t) - genuine(t).

    `genuine` is f~_X~, estimated from the genuine reports alone. A positive value is the attacker's
    gain, a negative one is below genuine. This is the sign in which the paper discusses its results
    (VI-C); its formula prints the difference the other way round. Repeated targets count once.
    Raises ParameterError for an index outside the vectors, which must be finite and of one length.
    """
    f = finite_vector(estimate, "estimate")
    gain = f - finite_vector(genuine, "genuine", f.size)
    return float(gain[list(target_indices(targets, gain.size))].sum())

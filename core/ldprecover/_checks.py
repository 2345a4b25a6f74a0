"""Checks of arguments shared by the package."""

import operator
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._types import FloatArray
from ldprecover.errors import ParameterError


def finite_vector(values: ArrayLike, name: str) -> FloatArray:
    """Return a fresh float64 vector of `values`; ParameterError unless it is a non-empty vector of finite numbers."""
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be an array of numbers") from None
    if vector.ndim != 1 or not vector.size:
        raise ParameterError(f"{name} must be a one-dimensional array of at least one number")
    if not np.isfinite(vector).all():
        raise ParameterError(f"{name} must be finite; entry {int(np.argmin(np.isfinite(vector)))} is not")
    return vector


def target_indices(targets: Iterable[int], d: int) -> tuple[int, ...]:
    """Return the targets sorted and once each; ParameterError for one that is no index of the d items."""
    indices = set()
    for target in targets:
        try:
            index = operator.index(target)
        except TypeError:
            index = -1
        if isinstance(target, bool) or not 0 <= index < d:
            raise ParameterError(f"every target must be an integer from 0 to {d - 1}, not {target!r:.40}")
        indices.add(index)
    return tuple(sorted(indices))

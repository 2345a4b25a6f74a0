"""Checks of arguments shared by the package."""

import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from ldprecover.errors import ParameterError
from ldprecover.types import FloatArray


def finite_vector(values: ArrayLike, name: str) -> FloatArray:
    """Return a fresh float64 vector of `values`; ParameterError unless it is a non-empty vector of
    finite numbers.
    """
    try:
        given = np.asarray(values)
        if np.iscomplexobj(given):  # numpy would warn, and drop the imaginary part
            raise TypeError
        vector = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be an array of numbers") from None
    if vector.ndim != 1 or not vector.size:
        raise ParameterError(f"{name} must be a one-dimensional array of at least one number")
    if not np.isfinite(vector).all():
        raise ParameterError(
            f"{name} must be finite; entry {int(np.argmin(np.isfinite(vector)))} is not"
        )
    return vector


def real(value: object) -> float | None:
    """Return a real number, numpy's among them, as a float, past its range infinite; None for
    anything else.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond any float
        return math.inf


def whole(value: object) -> int | None:
    """Return an integer, numpy's among them, as an int; None for anything else, and for a bool."""
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)

"""Checks of arguments, for all packages."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from ldprecover.errors import ParameterError
from ldprecover.items import quoted
from ldprecover.types import FloatArray


def finite_vector(values: ArrayLike, name: str) -> FloatArray:
    """Return a new float64 vector of `values`.

    Raises ParameterError unless it is a non-empty vector of finite numbers.
    """
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):  # numpy would warn, and drop the imaginary part
            raise TypeError
        vector = np.array(array, dtype=np.float64)
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
    """Return a real number, also of numpy, as a float; None for any other value.

    A number beyond the range of floats is infinite.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond any float
        return math.inf


def is_integer(value: object, low: int, high: float = math.inf) -> TypeGuard[int]:
    """Return whether a value is an int from `low` to `high`; neither a bool nor numpy's is one."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def whole(value: object) -> int | None:
    """Return an integer, also of numpy, as an int; None for any other value, and for a bool."""
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return "; did you mean 'oue'?" for a name that is near one of `names`, or ""."""
    from difflib import get_close_matches  # only errors need it

    folded = {each.casefold(): each for each in names}
    near = get_close_matches(str(name)[:80].casefold(), folded, 1)
    return f"; did you mean {quoted(folded[near[0]])}?" if near else ""

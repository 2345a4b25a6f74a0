"""Checks of arguments, for all packages."""

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldprecover.errors import ParameterError
from ldprecover.items import quoted, whole
from ldprecover.types import FloatArray, Int64Array

_MOST = (1 << 63) - 1


def plain_array(values: object, name: str) -> NDArray[Any]:
    """Return values as a numpy array of at least one dimension.

    Raises ParameterError for values that numpy would convert into other ones: packed bytes, masked
    entries, and a bool in a list of integers.
    """
    if type(values) is np.ndarray and values.ndim:  # most values, and the other tests are slow
        return values
    if isinstance(values, bytes | bytearray | memoryview) or np.ma.is_masked(values):
        raise ParameterError(
            f"{name} must be an array without masked entries; wire.unpack reads packed bytes"
        )
    try:
        array = np.asarray(values)
        if not array.ndim:
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{name} must be an array or a list of equal rows, not {values!r:.40}"
        ) from None
    if (
        isinstance(values, list | tuple)
        and array.dtype.kind in "iuf"
        and {bool, np.bool_} & {*map(type, values)}
    ):
        raise ParameterError(f"{name} must not mix numbers and truth values")
    return array


def integers(values: object, name: str, high: int) -> NDArray[Any]:
    """Return an array of integers from 0 to `high`, of the shape and the type of the values.

    Raises ParameterError, with the type or the first other entry. Floats are no integers, even
    whole ones, and neither are truth values; an object is one if it is Python's or numpy's integer.
    """
    array = numbers = plain_array(values, name)
    if array.dtype == object:
        plain = [-1 if (n := whole(each)) is None else n for each in array.flat]
        numbers = np.array(plain, object).reshape(array.shape)
    elif array.dtype.kind not in "iu":
        if array.size:
            raise ParameterError(
                f"{name} must be integers, not of type {array.dtype}: astype(int) if all are whole"
            )
        return np.zeros(array.shape, np.int64)
    if array.size and not 0 <= numbers.min() <= numbers.max() <= high:
        first = first_entry(array, (numbers < 0) | (numbers > high))
        raise ParameterError(f"{name} must be integers from 0 to {high}; {first}")
    return numbers


def counts_of(values: object, name: str) -> Int64Array:
    """Return counts of reports or users as int64.

    Raises ParameterError unless they are integers of at least 0 whose sum is below 2^63.
    """
    counts = integers(values, name, _MOST).astype(np.int64, copy=False)
    if exact_sum(counts) > _MOST:
        raise ParameterError(f"{name} must sum to less than 2^63")
    return counts


def exact_sum(numbers: Int64Array) -> int:
    """Return the sum of integers, where numpy's would wrap around at 2^63."""
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())


def finite_array(values: object, name: str) -> FloatArray:
    """Return a new float64 array of `values`. Raises ParameterError unless all are finite numbers.

    Text is no number, and neither is a truth value.
    """
    array = plain_array(values, name)
    if array.dtype == object:
        array = np.array([real(each) for each in array.flat], np.float64).reshape(array.shape)
    if array.size and array.dtype.kind not in "iuf":
        raise ParameterError(f"{name} must be an array of numbers, not of type {array.dtype}")
    floats = np.array(array, dtype=np.float64)
    if not (finite := np.isfinite(floats)).all():
        raise ParameterError(f"{name} must be finite; {first_entry(floats, ~finite)}")
    return floats


def finite_vector(values: object, name: str, size: int | None = None) -> FloatArray:
    """Return a new float64 vector of `values`.

    Raises ParameterError unless it is a non-empty vector of finite numbers, of `size` items.
    """
    vector = finite_array(values, name)
    if vector.ndim != 1 or not vector.size:
        raise ParameterError(f"{name} must be a one-dimensional array of at least one number")
    if size not in (None, vector.size):
        raise ParameterError(f"{name} must be of the {size} items, not {vector.size}")
    return vector


def first_entry(array: NDArray[Any], bad: ArrayLike) -> str:
    """Return the text "entry 3 is -1" for the first bad entry of an array."""
    at = np.argwhere(bad)[0].tolist()
    return f"entry {', '.join(map(str, at))} is {array[tuple(at)]!s:.40}"


def real(value: object) -> float | None:
    """Return a real number, also of numpy, fractions or decimal, as a float; None for other values.

    A number beyond the range of floats is infinite.
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond any float
        return math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def check_whole(name: str, value: object, low: float, high: float = math.inf) -> int:
    """Return an integer, also of numpy, as an int.

    Raises ParameterError unless it is from `low` to `high`.
    """
    number = whole(value)
    if number is None or not low <= number <= high:
        bounds = f"from {low}" if high == math.inf else f"from {low} to {high}"
        raise ParameterError(f"{name} must be an integer {bounds}, not {value!r:.40}")
    return number


def check_real(name: str, value: object, low: float, high: float, *, above: bool = False) -> float:
    """Return a real number, also of numpy, as a float.

    Raises ParameterError unless it is from `low` to `high`, or `above` the lower one.
    """
    number = real(value)
    if number is None or not low <= number <= high or (above and number == low):
        bounds = f"above {low:g} and at most {high:.7g}" if above else f"from {low:g} to {high:g}"
        raise ParameterError(f"{name} must be a number {bounds}, not {value!r:.40}")
    return number


def check_parameters(
    function: Callable[..., object], number: int, words: str, **keywords: object
) -> None:
    """Raise ParameterError unless the function takes this many arguments and the keywords.

    Its message begins with `words`, which say what the function must be.
    """
    try:
        signature(function).bind(*range(number), **keywords)
    except (TypeError, ValueError) as error:  # ValueError: a builtin may state no signature
        raise ParameterError(f"{words}: {error}") from None


@cache  # reading the metadata of all distributions takes milliseconds
def _installed(group: str) -> frozenset[str]:
    from importlib.metadata import entry_points

    return frozenset(entry.name for entry in entry_points(group=group))


def plugin_hint(group: str, name: str) -> str:
    """Return the end of a message that says how to load a plugin; empty if none has this name."""
    if name not in _installed(group):
        return ""
    package = "ldprecover_attacker" if group == "ldprecover.attacks" else "ldprecover"
    return f"; this plugin is installed and not loaded: call {package}.plugins.load([{name!r}])"


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return "; did you mean 'oue'?" for a name that is near one of `names`, or ""."""
    from difflib import get_close_matches  # only errors need it

    folded = {each.casefold(): each for each in names}
    near = get_close_matches(str(name)[:80].casefold(), folded, 1)
    return f"; did you mean {quoted(folded[near[0]])}?" if near else ""

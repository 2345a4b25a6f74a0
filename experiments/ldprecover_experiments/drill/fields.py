"""The fields of a form as they come in: strict JSON, each with its range."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ldprecover import ParameterError


class Fields:
    """A JSON object, taken apart field by field; a field that is absent has its default.

    Raises ParameterError for anything but an object, and each method for a value of another type or
    outside its range; the message names the field.
    """

    def __init__(self, given: Any, names: Collection[str]) -> None:
        if not isinstance(given, Mapping):
            raise ParameterError("what is asked for must be a JSON object")
        unknown = sorted(given.keys() - set(names))
        if unknown:
            raise ParameterError(
                f"there is no field {unknown[0]!r:.40}; there are {', '.join(names)}"
            )
        self._given = given

    def among(self, name: str, default: str, known: Collection[str]) -> str:
        """Return one of the known names."""
        value = self._given.get(name, default)
        if not isinstance(value, str) or value not in known:
            raise ParameterError(f"{name} must be one of {', '.join(known)}, not {value!r:.40}")
        return value

    def several(self, name: str, default: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
        """Return some of the known names, each once, in their order."""
        value = self._given.get(name, default)
        if not isinstance(value, list | tuple) or not all(
            isinstance(one, str) and one in known for one in value
        ):
            raise ParameterError(
                f"{name} must be a list of some of {', '.join(known)}, not {value!r:.80}"
            )
        return tuple(one for one in known if one in value)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Return an integer, both ends allowed."""
        value = self._given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ParameterError(
                f"{name} must be an integer from {low:,} to {high:,}, not {value!r:.40}"
            )
        return value

    def number(self, name: str, default: float) -> float:
        """Return a finite number; its range is checked where it is used."""
        value = self._given.get(name, default)
        try:
            number = (
                math.nan
                if isinstance(value, bool) or not isinstance(value, int | float)
                else float(value)
            )
        except OverflowError:  # an integer beyond any float
            number = math.inf
        if not math.isfinite(number):
            raise ParameterError(f"{name} must be a number, not {value!r:.40}")
        return number

    def flag(self, name: str, default: bool) -> bool:
        """Return true or false."""
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise ParameterError(f"{name} must be true or false, not {value!r:.40}")
        return value

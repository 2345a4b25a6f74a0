"""How many items an attacker takes."""

import numpy as np

from ldprecover import ParameterError

_ITEMS = "size, a number of items"


def check_size(size: object, what: str = _ITEMS) -> None:
    """Raise ParameterError for a number of items that no domain has."""
    if size is not None and (
        isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1
    ):
        raise ParameterError(f"{what}, must be an integer from 1, not {size!r}")


def fitting_size(size: int | None, *, default: int, most: int, what: str = _ITEMS) -> int:
    """Return the size, or its default. Raises ParameterError for one greater than `most`."""
    if size is None:
        return min(default, most)
    if size > most:
        raise ParameterError(f"{what}, must be from 1 to {most}, not {size}")
    return int(size)

"""Checks of the attacks' arguments."""

from typing import TypeGuard

import numpy as np

from ldprecover import ParameterError

MAX_SEARCH = 1_000_000
"""Most hash seeds that may be tried for one report."""

AGAINST = ("projected", "raw")
"""How a server uses its estimates."""

_SIZE = "size, a number of items"


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of Python or numpy, and no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_search(search: object, *, exhaustive: bool = True) -> None:
    """Raise ParameterError unless `search` is a number of seeds, or "exhaustive" where allowed."""
    if exhaustive and search == "exhaustive":
        return
    if not is_integer(search) or not 1 <= search <= MAX_SEARCH:
        also = ', or "exhaustive"' if exhaustive else ""
        raise ParameterError(
            f"search must be a number of seeds from 1 to {MAX_SEARCH}{also}, not {search!r}"
        )


def check_against(against: object) -> None:
    """Raise ParameterError unless `against` is one of AGAINST."""
    if against not in AGAINST:
        raise ParameterError(f"against must be one of {', '.join(AGAINST)}, not {against!r}")


def check_size(size: object, name: str = _SIZE) -> None:
    """Raise ParameterError unless `size` is None or a positive integer."""
    if size is not None and (not is_integer(size) or size < 1):
        raise ParameterError(f"{name}, must be an integer from 1, not {size!r}")


def size_or_default(size: int | None, *, default: int, maximum: int, name: str = _SIZE) -> int:
    """Return the size, or its default. Raises ParameterError for a size above `maximum`."""
    if size is None:
        return min(default, maximum)
    if size > maximum:
        raise ParameterError(f"{name}, must be from 1 to {maximum}, not {size}")
    return int(size)

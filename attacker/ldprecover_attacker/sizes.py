"""How many items an attacker takes."""

import numpy as np

from ldprecover import ParameterError

__all__ = ["check_size", "fitting_size"]


def check_size(size: object) -> None:
    """Refuse a number of items that fits no domain."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
        raise ParameterError(f"size, a number of items, must be an integer from 1, not {size!r}")


def fitting_size(size: int | None, *, default: int, d: int) -> int:
    """Return the size, or its default, refusing one greater than the domain."""
    if size is None:
        return min(default, d)
    if size > d:
        raise ParameterError(f"size, a number of items, must be from 1 to {d}, not {size}")
    return int(size)

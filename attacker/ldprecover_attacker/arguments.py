"""Checks of the attacks' arguments."""

from ldprecover import ParameterError
from ldprecover._checks import check_whole
from ldprecover.items import whole

MAX_SEARCH = 1_000_000
"""Most hash seeds that may be tried for one report."""

AGAINST = ("projected", "raw")
"""How a server uses its estimates."""

_SIZE = "size, a number of items"


def check_search(search: object, *, exhaustive: bool = True) -> None:
    """Raise ParameterError unless `search` is a number of seeds, or "exhaustive" where allowed."""
    if exhaustive and search == "exhaustive":
        return
    if not 1 <= (whole(search) or 0) <= MAX_SEARCH:
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
    if size is not None:
        check_whole(f"{name},", size, 1)


def size_or_default(size: int | None, *, default: int, maximum: int, name: str = _SIZE) -> int:
    """Return the size, or its default. Raises ParameterError for a size above `maximum`."""
    if size is None:
        return min(default, maximum)
    if size > maximum:
        raise ParameterError(f"{name}, must be from 1 to {maximum}, not {size}")
    return int(size)

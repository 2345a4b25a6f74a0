"""A round's retention: how long its reports are kept, as text and in hours."""

from ldprecover.errors import ParameterError


def hours(retention: str) -> int | None:
    """Return "forever" as None, "none" as 0, and "36h" or "7d" in hours. Raises ParameterError."""
    if retention == "forever":
        return None
    if retention == "none":
        return 0
    number, unit = retention[:-1], retention[-1:]
    if (
        unit not in ("h", "d")
        or not (number.isascii() and number.isdigit())
        or not 1 <= int(number) <= 99_999
    ):
        raise ParameterError(
            'retention must be "forever", "none", or 1 to 99999 hours or days, as "36h" or "7d"'
        )
    return int(number) * (24 if unit == "d" else 1)


def words(hours: int | None) -> str:
    """Return the text that `hours` reads; whole days as days."""
    if hours is None:
        return "forever"
    if hours == 0:
        return "none"
    return f"{hours // 24}d" if hours % 24 == 0 else f"{hours}h"

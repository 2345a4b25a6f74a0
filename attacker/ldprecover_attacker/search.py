"""How many hash seeds an attacker tries."""

import numpy as np

from ldprecover import ParameterError

MAX_SEARCH = 1_000_000


def check_search(search: object, *, exhaustive: bool = True) -> None:
    """Raise ParameterError when `search` is neither a number of seeds nor, where that is known,
    "exhaustive".
    """
    whole = isinstance(search, int | np.integer) and not isinstance(search, bool)
    if not (exhaustive and search == "exhaustive") and not (whole and 1 <= search <= MAX_SEARCH):  # type: ignore[operator]
        also = ', or "exhaustive"' if exhaustive else ""
        raise ParameterError(
            f"search must be a number of seeds from 1 to {MAX_SEARCH}{also}, not {search!r}"
        )

"""Tallies as they are stored: four bytes a count, as long as so many reports can be counted in
four.

No count is above n, the number of reports, which stands beside them and so tells the width. A
commit writes the row of its round anew: what is half as wide is written in half the time.
"""

import numpy as np

from ldprecover.counting.tally import Tally

_NARROW, _WIDE = np.dtype("<u4"), np.dtype("<i8")


def stored_counts(tally: Tally) -> bytes:
    """Return what is stored of a tally beside its n."""
    return tally.summary.astype(_width(tally.n), copy=False).tobytes()


def read_tally(counts: bytes, n: int) -> Tally:
    """Read a tally that was stored. Raises ParameterError or ValueError where it cannot be one."""
    return Tally(np.frombuffer(counts, dtype=_width(n)), n)


def _width(n: int) -> np.dtype[np.unsignedinteger | np.signedinteger]:
    return _NARROW if n <= np.iinfo(_NARROW).max else _WIDE

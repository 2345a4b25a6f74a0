"""How tallies are stored: 4 bytes a count below 2³² reports, 8 bytes from there on.

No count exceeds n, the number of reports in the same row, so n determines the width. Every commit
rewrites the row; half the width takes half the time.
"""

import numpy as np

from ldprecover.counting.tally import Tally

_NARROW, _WIDE = np.dtype("<u4"), np.dtype("<i8")


def encode_counts(tally: Tally) -> bytes:
    """Return the bytes of a tally's summary; n is stored beside them."""
    return tally.summary.astype(_width(tally.n), copy=False).tobytes()


def decode_tally(counts: bytes, n: int) -> Tally:
    """Return a stored tally. Raises ParameterError or ValueError if the bytes do not fit n."""
    return Tally(np.frombuffer(counts, dtype=_width(n)), n)


def _width(n: int) -> np.dtype[np.unsignedinteger | np.signedinteger]:
    return _NARROW if n <= np.iinfo(_NARROW).max else _WIDE

"""Tallies: how they are stored, and their sums over processes.

A tally takes 4 bytes a count below 2³² reports, and 8 bytes from there on. No count exceeds n, the
number of reports in the same row, so n determines the width. Every commit rewrites the row; half
the width takes half the time.
"""

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa

from ldprecover.errors import ParameterError
from ldprecover.reports.tally import Tally
from ldprecover_server.errors import RoundDamagedError, RoundNotFoundError
from ldprecover_server.storage.schema import NOT_GONE, rounds, tallies, total

NUMBER_OF_REPORTS = (
    # Correlated, so that the outer query's rounds are counted although it names no tally.
    sa.select(total(tallies.c.n))
    .where(tallies.c.round == rounds.c.seq)
    .correlate(rounds)
    .scalar_subquery()
)
"""The number of reports of each round of a query."""

_READ_COUNTS = 1 << 20  # of one statement, of one process
_NARROW, _WIDE = np.dtype("<u4"), np.dtype("<i8")


def encode_counts(tally: Tally) -> bytes:
    """Return the bytes of a tally's summary; n is stored beside them."""
    return tally.summary.astype(_width(tally.n), copy=False).tobytes()


def decode_tally(counts: bytes, n: int) -> Tally:
    """Return a stored tally. Raises ParameterError or ValueError if the bytes do not fit n."""
    return Tally(np.frombuffer(counts, dtype=_width(n)), n)


def _width(n: int) -> np.dtype[np.unsignedinteger | np.signedinteger]:
    return _NARROW if n <= np.iinfo(_NARROW).max else _WIDE


def sum_tallies(connection: sa.Connection, seqs: Sequence[int], size: int) -> Tally:
    """Return the tally of rounds over all processes; its summary has `size` counts.

    Raises RoundNotFoundError and RoundDamagedError.
    """
    # In the same view as its tallies: a round deleted since it was looked up has none.
    number = sa.select(sa.func.count()).where(rounds.c.seq.in_(seqs), NOT_GONE)
    if connection.scalar(number) != len(seqs):
        raise RoundNotFoundError("the round was deleted")
    tally, step = Tally.empty(size), max(1, _READ_COUNTS // size)
    try:
        for start in range(0, len(seqs), step):
            query = sa.select(tallies.c.n, tallies.c.counts)
            query = query.where(tallies.c.round.in_(seqs[start : start + step]))
            for row in connection.execute(query):
                tally += decode_tally(row.counts, row.n)
        return tally
    except (ParameterError, ValueError) as error:  # the caller's parameters are not at fault
        raise RoundDamagedError("the stored counts do not fit the round") from error

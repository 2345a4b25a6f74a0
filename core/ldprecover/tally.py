"""Support counts that add."""

from dataclasses import dataclass

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols.base import FrequencyOracle
from ldprecover.types import Int64Array, Reports

__all__ = ["Tally"]


@dataclass(frozen=True, eq=False)
class Tally:
    """Support counts C(v) of n reports. Tallies add and subtract exactly, in any order and split.

    Raises ParameterError where `counts` is not a vector of integers from 0 to n, and where tallies
    of different domains meet.
    """

    counts: Int64Array
    n: int

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        if counts.ndim != 1 or not np.issubdtype(counts.dtype, np.integer):
            raise ParameterError("counts must be a one-dimensional array of integers")
        if isinstance(self.n, bool) or not isinstance(self.n, int) or not 0 <= self.n < 1 << 63:
            raise ParameterError("n must be an integer of at least 0, and below 2^63")
        if counts.size and (counts.min() < 0 or counts.max() > self.n):
            raise ParameterError("every count must be from 0 to n")
        object.__setattr__(self, "counts", counts.astype("<i8", copy=False))

    @classmethod
    def empty(cls, d: int) -> "Tally":
        """Return the tally of no reports over d items."""
        return cls(np.zeros(d, dtype="<i8"), 0)

    @classmethod
    def of(cls, oracle: FrequencyOracle, reports: Reports) -> "Tally":
        """Return the tally of these reports."""
        return cls(oracle.support_counts(reports), len(reports))

    @classmethod
    def from_bytes(cls, data: bytes, n: int) -> "Tally":
        """Read counts written by `to_bytes`."""
        return cls(np.frombuffer(data, dtype="<i8"), n)

    def to_bytes(self) -> bytes:
        """Return the counts as little-endian signed 64-bit integers."""
        return self.counts.tobytes()

    def __add__(self, other: "Tally") -> "Tally":
        self._fits(other)
        return Tally(self.counts + other.counts, self.n + other.n)

    def __sub__(self, other: "Tally") -> "Tally":
        self._fits(other)
        return Tally(self.counts - other.counts, self.n - other.n)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and self.n == other.n and np.array_equal(self.counts, other.counts)

    def _fits(self, other: "Tally") -> None:
        if self.counts.size != other.counts.size:
            raise ParameterError(f"tallies of {self.counts.size} and {other.counts.size} items do not add")

    __hash__ = None  # type: ignore[assignment]

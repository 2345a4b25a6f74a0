"""Tallies: summaries of reports that add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.types import Int64Array, Reports

if TYPE_CHECKING:
    from ldprecover.protocols.oracle import FrequencyOracle


@dataclass(frozen=True, eq=False)
class Tally:
    """A summary of n reports, from which their protocol reads the support counts C(v).

    For most protocols the summary is the counts. Tallies add and subtract exactly, in any order and
    split.

        tally = Tally.of(oracle, reports) + Tally.of(oracle, more_reports)
        frequencies = oracle.estimate(tally.counts(oracle), tally.n)

    Raises ParameterError if `summary` is not a vector of integers from 0 to n, and for sums of
    tallies of different sizes.
    """

    summary: Int64Array
    n: int

    def __post_init__(self) -> None:
        summary = np.asarray(self.summary)
        if summary.ndim != 1 or not np.issubdtype(summary.dtype, np.integer):
            raise ParameterError("counts must be a one-dimensional array of integers")
        if isinstance(self.n, bool) or not isinstance(self.n, int) or not 0 <= self.n < 1 << 63:
            raise ParameterError("n must be an integer of at least 0, and below 2^63")
        if summary.size and (summary.min() < 0 or summary.max() > self.n):
            raise ParameterError("every count must be from 0 to n")
        object.__setattr__(self, "summary", summary.astype("<i8", copy=False))

    @classmethod
    def empty(cls, size: int) -> Tally:
        """Return the tally of no reports, for a given `FrequencyOracle.summary_size`."""
        return cls(np.zeros(size, dtype="<i8"), 0)

    @classmethod
    def of(cls, oracle: FrequencyOracle, reports: Reports) -> Tally:
        """Return the tally of these reports."""
        return cls(oracle.summarise(reports), len(reports))

    @classmethod
    def from_bytes(cls, data: bytes, n: int) -> Tally:
        """Read a summary written by `to_bytes`."""
        return cls(np.frombuffer(data, dtype="<i8"), n)

    def to_bytes(self) -> bytes:
        """Return the summary as little-endian signed 64-bit integers."""
        return self.summary.tobytes()

    def counts(self, oracle: FrequencyOracle) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the oracle's d items.

        Raises ParameterError if the summary is not of this oracle's size.
        """
        if self.summary.size != oracle.summary_size:
            raise ParameterError(
                f"the tally is of {self.summary.size} items, not of {oracle.summary_size}"
            )
        return oracle.counts_from(self.summary)

    def __add__(self, other: Tally) -> Tally:
        self._fits(other)
        return Tally(self.summary + other.summary, self.n + other.n)

    def __sub__(self, other: Tally) -> Tally:
        self._fits(other)
        return Tally(self.summary - other.summary, self.n - other.n)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and self.n == other.n
            and np.array_equal(self.summary, other.summary)
        )

    def __repr__(self) -> str:
        return f"Tally({self.n:,} reports, {self.summary.size:,} numbers)"

    def _fits(self, other: Tally) -> None:
        if self.summary.size != other.summary.size:
            raise ParameterError(
                f"tallies of {self.summary.size} and {other.summary.size} items do not add"
            )

    __hash__ = None  # type: ignore[assignment]

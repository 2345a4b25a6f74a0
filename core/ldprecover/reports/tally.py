"""Tallies: summaries of reports that add."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldprecover._checks import check_whole, exact_sum, integers
from ldprecover.errors import ParameterError
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.types import FloatArray, Int64Array, Reports


@dataclass(frozen=True, eq=False)
class Tally:
    """A summary of n reports, from which their protocol reads the support counts C(v).

    For most protocols the summary is the counts; it is copied and read-only. Tallies add and
    subtract exactly, in any order and split.

        tally = Tally.of(oracle, reports) + Tally.of(oracle, more_reports)
        frequencies = tally.frequencies(oracle)

    Raises ParameterError if `summary` is not a vector of integers from 0 to n, and for sums of
    tallies of different sizes.
    """

    summary: Int64Array
    n: int

    def __post_init__(self) -> None:
        n = check_whole("n", self.n, 0, (1 << 63) - 1)
        summary = integers(self.summary, "counts", n)
        if summary.ndim != 1:
            raise ParameterError("counts must be a one-dimensional array of integers")
        object.__setattr__(self, "n", n)
        summary = summary.astype("<i8")
        summary.flags.writeable = False
        object.__setattr__(self, "summary", summary)

    @classmethod
    def empty(cls, size: int) -> Tally:
        """Return the tally of no reports, for a given `FrequencyOracle.summary_size`."""
        return cls(np.zeros(size, dtype="<i8"), 0)

    @classmethod
    def of(cls, oracle: FrequencyOracle, reports: Reports) -> Tally:
        """Return the tally of these reports. Raises as `wire.checked`, which says what they are."""
        rows = oracle.wire.checked(reports)
        return cls(oracle.summarise(rows), len(rows))

    @classmethod
    def from_bytes(cls, data: bytes, n: int) -> Tally:
        """Read a summary written by `to_bytes`."""
        return cls(np.frombuffer(data, dtype="<i8"), n)

    def to_bytes(self) -> bytes:
        """Return the summary as little-endian signed 64-bit integers."""
        return self.summary.tobytes()

    def counts(self, oracle: FrequencyOracle) -> Int64Array:
        """Return C(v), the number of reports that support v, for each of the oracle's d items.

        Raises ParameterError if the summary is of another size, or of more than n reports.
        """
        if self.summary.size != oracle.summary_size:
            raise ParameterError(
                f"the tally is of {self.summary.size} items, not of {oracle.summary_size}"
            )
        is_transformed = oracle.traits.histogram and not oracle.traits.one_item
        if is_transformed and exact_sum(self.summary) > self.n:
            raise ParameterError(f"the tally is of more than its n, {self.n}, reports")
        return oracle.counts_from(self.summary)

    def frequencies(self, oracle: FrequencyOracle) -> FloatArray:
        """Return the unbiased frequencies of the oracle's d items.

        Raises ParameterError as `counts`, and for a tally of no reports.
        """
        return oracle.estimate(self.counts(oracle), self.n)

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
        if not isinstance(other, Tally):
            raise ParameterError(f"a tally adds to another tally, not to {other!r:.40}")
        if self.summary.size != other.summary.size:
            raise ParameterError(
                f"tallies of {self.summary.size} and {other.summary.size} items do not add"
            )

    __hash__ = None  # type: ignore[assignment]

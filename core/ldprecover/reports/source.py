"""The reports of a round, read block by block, in passes that give sums.

A pass calls a function on each block of reports and adds the results; memory does not grow with the
reports. If the summary of a protocol is the histogram of its reports, the histogram takes their
place: the reports are read once, to count them, or never, where their tally is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import numpy as np

from ldprecover._checks import exact_sum
from ldprecover.errors import ParameterError, ReportError
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports.sample import Sample
from ldprecover.reports.tally import Tally
from ldprecover.types import Reports

T = TypeVar("T")
Measure = Callable[[Sample], T]
"""Measures a block of reports."""

_CELLS = 1 << 22  # (report, item) pairs in a block: a block's support matrix takes 4 MB


class ReportSource:
    """Packed reports of one oracle: an array, or a function that returns an iterator over arrays.

    The function is called once for each pass and must yield the same reports in the same order; few
    blocks are held in memory. It is not called before a method needs it.

    If the oracle has the trait `histogram`, the first pass counts the reports, and all passes
    measure their histogram: their order and their division do not matter. `of_tally` is the source
    of such a histogram.

    After each block `progress` is called with the number of finished passes and the number of
    reports read in this pass.
    """

    def __init__(
        self,
        oracle: FrequencyOracle,
        reports: Reports | Callable[[], Iterable[Reports]],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.oracle = oracle
        """The oracle of the reports."""
        self.n: int | None = None
        """The number of reports; None before the first pass has counted them."""
        self._reports = reports if callable(reports) else oracle.wire.rows(reports)
        self._histogram: Sample | None = None
        self._progress = progress
        self._passes = 0

    @classmethod
    def of(
        cls, oracle: FrequencyOracle, reports: object, tally: Tally | None = None
    ) -> ReportSource:
        """Return the source of reports in any form: itself, an array, or a function.

        Raises ParameterError for a source of another oracle, and for what `WireForm.rows` rejects.
        A pass raises it for another number of reports than that of the `tally`.
        """
        if not isinstance(reports, ReportSource):
            reports = ReportSource(oracle, cast(Reports, reports))
        if reports.oracle != oracle:
            raise ParameterError(f"reports are of the oracle {reports.oracle}, not of {oracle}")
        if tally is not None:
            reports.n = tally.n
        return reports

    @classmethod
    def of_tally(cls, oracle: FrequencyOracle, tally: Tally) -> ReportSource:
        """Return the source of the reports that a tally counts.

        Raises ParameterError unless the oracle has the trait `histogram`, and for a tally that
        is not the histogram of n reports.
        """
        if not oracle.traits.histogram:
            raise ParameterError(f"a tally of {oracle.protocol} reports does not determine them")
        source = ReportSource(oracle, _no_reports(oracle))
        source._use_histogram(tally)
        return source

    def total(self, measure: Measure[T]) -> T:
        """Return the sum of `measure(sample)` over all blocks: one pass over the reports.

        Blocks are cut at the same reports whatever the arrays, and results are added in the order
        of the blocks: sums of floats too repeat to the bit. A histogram is one block. `measure`
        must return a new object each time, which is added to in place. Without a report the sum is
        the measure of an empty block. Raises ParameterError or ReportError for bytes that are not
        reports.
        """
        if not self.oracle.traits.histogram:
            total: T | None = self._pass(measure)
            if total is None:
                return measure(Sample(self.oracle, _no_reports(self.oracle)))
            return total
        if self._histogram is None:
            tally = self._pass(Sample.tally)
            histogram = self._use_histogram(tally or Tally.empty(self.oracle.summary_size))
        else:
            histogram = self._histogram
            self._report_progress(histogram.n)
            self._passes += 1
        return measure(histogram)

    def total_with(self, measure: Callable[[Sample, Any], T], values: np.ndarray) -> T:
        """Return the sum of `measure(sample, values of its rows)`; element i is of row i."""
        return self.total(
            lambda sample: measure(sample, values[sample.first :][: len(sample)]),
        )

    def tally(self) -> Tally:
        """Return the tally of all the reports."""
        return self.total(Sample.tally)

    def _use_histogram(self, tally: Tally) -> Sample:
        """Return the histogram of a tally, which takes the place of the reports."""
        oracle, summary = self.oracle, tally.summary
        if summary.size != oracle.summary_size or exact_sum(summary) != tally.n:
            raise ParameterError(
                f"the tally is not the histogram of {tally.n} {oracle.protocol} reports"
            )
        distinct = np.flatnonzero(summary)
        reports = distinct.astype(oracle.wire.dtype)
        self._histogram, self.n = Sample(oracle, reports, summary[distinct]), tally.n
        return self._histogram

    def _pass(self, measure: Measure[T]) -> T | None:
        """Return the sum of the measured blocks of one pass; None without reports."""
        total: T | None = None
        read = 0
        for block in self._blocks():
            result = measure(block)
            if total is None:
                total = result
            else:
                total += result  # type: ignore[operator]
            read += len(block)
            self._report_progress(read)
        if self.n not in (None, read):
            raise ParameterError(
                f"reports must be the same in each pass and in their tally, not {self.n} and then "
                f"{read}"
            )
        self.n = read
        self._passes += 1
        return total

    def _blocks(self) -> Iterator[Sample]:
        """Yield the reports in checked blocks of one size, whatever the sizes of the arrays."""
        arrays = self._reports() if callable(self._reports) else (self._reports,)
        size = max(1, _CELLS // self.oracle.domain_size)
        first, rows = 0, 0
        pending: list[Reports] = []  # arrays of `rows` reports, less than a block
        for array in map(self.oracle.wire.rows, arrays):
            start = 0
            while rows + len(array) - start >= size:
                stop = start + size - rows
                yield self._checked([*pending, array[start:stop]], first)
                first, start, pending, rows = first + size, stop, [], 0
            if start < len(array):
                pending.append(array[start:])
                rows += len(array) - start
        if rows:
            yield self._checked(pending, first)

    def _checked(self, arrays: list[Reports], first: int) -> Sample:
        block = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        try:
            self.oracle.wire.check(block)
        except ReportError as error:
            position = None if error.position is None else first + error.position
            raise ReportError(error.reason, position) from None
        return Sample(self.oracle, block, first=first)

    def _report_progress(self, read: int) -> None:
        if self._progress is not None:
            self._progress(self._passes, read)


def _no_reports(oracle: FrequencyOracle) -> Reports:
    return np.empty(0, dtype=oracle.wire.dtype)

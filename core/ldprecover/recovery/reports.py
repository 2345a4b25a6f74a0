"""The reports of a round, read block by block, in passes that give sums.

A pass calls a function on each block of reports and adds the results. The function can be pickled,
so other processes can run it; memory does not grow with the reports. Reports in parts are read
where they are measured, on this machine or on another.

If the summary of a protocol is the histogram of its reports, the histogram takes their place: the
reports are read once, to count them, or never, where their tally is known.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError, ReportError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.sample import Sample
from ldprecover.types import Reports

T = TypeVar("T")
Measure = Callable[[Sample], T]
"""Measures a block of reports."""
IndexedMeasure = Callable[[Sample, int], T]
"""Measures a block of reports, before which this many other rows come."""
_MeasureOf = Callable[[int, int], IndexedMeasure[T]]

_CELLS = 1 << 22  # (report, item) pairs in a block: a block's support matrix takes 4 MB
_TASK_CELLS = 1 << 30  # pairs that make parts enough for one task: half a second of counting
_MOST_TASKS = 1 << 12  # tasks of a pass, where the number of its reports is known before
_MOST_SUMS = 64  # sums of tasks that reach this process in such a pass
_AHEAD = 2  # tasks handed to each worker before the first of them is waited for


class Part(Protocol):
    """A reference to some of a round's reports: small, picklable, and read where it is measured."""

    @property
    def n(self) -> int:
        """The number of its reports."""

    def arrays(self) -> Iterable[Reports]:
        """Yield its reports as arrays, the same in the same order each time."""


class ReportSource:
    """Packed reports of one oracle: an array, or a function that returns an iterator over arrays.

    The function is called once for each pass and must yield the same reports in the same order; few
    blocks are held in memory. It is not called before a method needs it. `of_parts` is the source
    of reports that are read where they are measured.

    If the oracle has the trait `histogram`, the first pass counts the reports, and all passes
    measure their histogram, in this thread: their order and their division do not matter.
    `of_tally` is the source of such a histogram.

    `executor` runs the measurements, on threads or on processes, which receive each block pickled;
    None runs them in this thread. After each block `progress` is called with the number of finished
    passes and the number of reports read in this pass.
    """

    def __init__(
        self,
        oracle: FrequencyOracle,
        reports: Reports | Callable[[], Iterable[Reports]],
        *,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if not callable(reports) and not isinstance(reports, np.ndarray):
            raise ParameterError(
                "reports must be an array of packed reports, or a function that returns such arrays"
            )
        self.oracle = oracle
        """The oracle of the reports."""
        self.n: int | None = None
        """The number of reports; None before the first pass has counted them."""
        self._reports = reports
        self._parts: Iterable[Part] | None = None
        self._histogram: Sample | None = None
        self._apart = False
        self._executor, self._progress = executor, progress
        self._size = max(1, _CELLS // oracle.domain_size)  # reports of a block
        self._passes = 0

    @classmethod
    def of_parts(
        cls,
        oracle: FrequencyOracle,
        parts: Iterable[Part],
        *,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
        apart: bool = False,
    ) -> ReportSource:
        """Return the source of the reports of some parts, each read once in every pass.

        The executor receives the parts in tasks of one or several and reads them; without one this
        thread does. A sequence of parts makes up to 4,096 tasks, and consecutive tasks up to 65
        sums, which an executor with `submit_sum` adds in its workers: of a larger number only these
        sums reach this process. Tasks and sums are cut at the same parts with any executor, so the
        total is the same to the bit. With `apart` each part is one task: for parts that hold their
        reports in memory.
        """

        def arrays() -> Iterator[Reports]:
            for part in parts:
                yield from part.arrays()

        source = cls(oracle, arrays, executor=executor, progress=progress)
        source._parts, source._apart = parts, apart
        return source

    @classmethod
    def of_tally(cls, oracle: FrequencyOracle, tally: Tally) -> ReportSource:
        """Return the source of the reports that a tally counts.

        Raises ParameterError unless the oracle has the trait `histogram`, and for a tally that
        is not the histogram of n reports.
        """
        if not oracle.traits.histogram:
            raise ParameterError(f"a tally of {oracle.protocol} reports does not determine them")
        source = cls(oracle, _no_reports(oracle))
        source._take(tally)
        return source

    @property
    def in_parts(self) -> bool:
        """Whether the reports are read where they are measured, perhaps on another machine."""
        return self._parts is not None

    def total(self, measure: Measure[T], *, over: Sequence[np.ndarray] | None = None) -> T:
        """Return the sum of `measure(sample)` over all blocks: one pass over the reports.

        Blocks are cut at the same reports whatever the arrays, within each part if there are parts,
        and results are added in the order of the blocks: sums of floats too repeat to the bit, with
        any executor. A histogram is one block. `measure` must return a new object each time, which
        is added to in place. For an executor of processes it must be picklable. Without a report
        the sum is the measure of an empty block.

        `over` are arrays to measure as reports: the results of an earlier pass for each block.
        Raises ParameterError or ReportError for bytes that are not reports.
        """
        return self._sum(lambda first, n: partial(_without_index, measure), over)

    def total_indexed(self, measure: IndexedMeasure[T]) -> T:
        """Return the sum of `measure(sample, first)`; `first` rows precede the block."""
        return self._sum(lambda first, n: measure, None)

    def total_with(self, measure: Callable[[Sample, Any], T], values: np.ndarray) -> T:
        """Return the sum of `measure(sample, values of its rows)`; element i is of row i.

        A task receives only the values of the rows that it measures.
        """

        def of_reports(first: int, n: int) -> IndexedMeasure[T]:
            return partial(_with_values, measure, values[first : first + n], first)

        return self._sum(of_reports, None)

    def tally(self) -> Tally:
        """Return the tally of all the reports."""
        return self.total(Sample.tally)

    def _take(self, tally: Tally) -> Sample:
        """Return the histogram of a tally, which takes the place of the reports."""
        oracle, summary = self.oracle, tally.summary
        if summary.size != oracle.summary_size or summary.sum() != tally.n:
            raise ParameterError(
                f"the tally is not the histogram of {tally.n} {oracle.protocol} reports"
            )
        distinct = np.flatnonzero(summary)
        reports = distinct.astype(oracle.wire.dtype)
        self._histogram, self.n = Sample(oracle, reports, summary[distinct]), tally.n
        return self._histogram

    def _blocks(self) -> Iterator[tuple[Reports, int]]:
        return _blocks(self.oracle, self._arrays(), 0, self._size)

    def _arrays(self) -> Iterator[Reports]:
        yield from self._reports() if callable(self._reports) else (self._reports,)

    def _sum(self, measure_of: _MeasureOf[T], over: Sequence[np.ndarray] | None) -> T:
        """Return the sum; `measure_of(first, n)` measures n rows that `first` others precede."""
        if over is not None or not self.oracle.traits.histogram:
            return self._read(measure_of, over)
        histogram = self._histogram
        if histogram is None:
            histogram = self._take(self._read(lambda first, n: _tally, None))
        else:
            self._report_pass(histogram.n)
        return measure_of(0, len(histogram))(histogram, 0)

    def _report_pass(self, n: int) -> None:
        if self._progress is not None:
            self._progress(self._passes, n)
        self._passes += 1

    def _read(self, measure_of: _MeasureOf[T], over: Sequence[np.ndarray] | None) -> T:
        total: Any = None
        summed: Any = None
        read = 0
        with closing(self._results(self._tasks(measure_of, over))) as results:
            for rows, is_last, result in results:
                summed = _added(summed, result)
                if is_last:
                    total, summed = _added(total, summed), None
                read += rows
                if self._progress is not None:
                    self._progress(self._passes, read)
        if self.n not in (None, read):
            raise ParameterError(
                f"reports must be the same in each pass, not {self.n} and then {read}"
            )
        self.n = read
        self._passes += 1
        if total is None:
            return measure_of(0, 0)(Sample(self.oracle, _no_reports(self.oracle)), 0)
        return total  # type: ignore[no-any-return]

    def _tasks(
        self, measure_of: _MeasureOf[T], over: Sequence[np.ndarray] | None
    ) -> Iterator[tuple[int, bool, Callable[[], T]]]:
        """Yield each task, its number of reports, and whether it is the last of a sum.

        It measures one block, or some parts.
        """
        if over is not None or self._parts is None:
            blocks = self._blocks() if over is None else ((block, 0) for block in over)
            for block, first in blocks:
                measure = measure_of(first, len(block))
                yield len(block), True, partial(measure, Sample(self.oracle, block), first)
            return
        n = sum(part.n for part in self._parts) if isinstance(self._parts, Sequence) else 0
        enough = 1 if self._apart else _TASK_CELLS // self.oracle.domain_size
        first = summed = 0
        for parts in _gathered(self._parts, max(enough, -(-n // _MOST_TASKS))):
            rows = sum(part.n for part in parts)
            measure = measure_of(first, rows)
            task = partial(_of_parts, measure, self.oracle, parts, first, self._size)
            first += rows
            is_last = first == n or (first - summed) * _MOST_SUMS >= n
            yield rows, is_last, task
            if is_last:
                summed = first

    def _results(
        self, tasks: Iterator[tuple[int, bool, Callable[[], T]]]
    ) -> Generator[tuple[int, bool, T]]:
        """Yield the number of reports, whether it ends a sum, and the result of each task.

        They are in order. If the executor adds, those of a sum are one result.
        """
        if self._executor is None:
            for rows, is_last, task in tasks:
                yield rows, is_last, task()
            return
        waiting: deque[_Submitted[T]] = deque()
        try:
            for submitted in _submitted(self._executor, tasks):
                waiting.append(submitted)
                # Without the oldest: the last task of a sum may run alone.
                later = sum(each.tasks for each in waiting) - waiting[0].tasks
                if later >= _AHEAD * number_of_workers(self._executor) - 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for submitted in waiting:
                submitted.future.cancel()


@dataclass(frozen=True)
class _Submitted(Generic[T]):
    """Consecutive tasks in work, their reports, and whether they end a sum."""

    tasks: int
    rows: int
    is_last: bool
    future: Future[T]

    def result(self) -> tuple[int, bool, T]:
        return self.rows, self.is_last, self.future.result()


def _submitted(
    executor: Executor, tasks: Iterator[tuple[int, bool, Callable[[], T]]]
) -> Iterator[_Submitted[T]]:
    """Submit tasks, those of a sum together if the executor adds."""
    submit_sum: Any = getattr(executor, "submit_sum", None)
    pending: list[Callable[[], T]] = []
    read = 0
    for rows, is_last, task in tasks:
        pending.append(task)
        read += rows
        if submit_sum is None or is_last:
            future = executor.submit(task) if len(pending) == 1 else submit_sum(_added, pending)
            yield _Submitted(len(pending), read, is_last, future)
            pending, read = [], 0


def number_of_workers(executor: Executor) -> int:
    """Return how many workers an executor has now: those of a cluster come and go."""
    # Executors of concurrent.futures have this attribute, and no public one says the same.
    return getattr(executor, "_max_workers", None) or os.cpu_count() or 1


def _without_index(measure: Measure[T], sample: Sample, _first: int) -> T:
    return measure(sample)


def _tally(sample: Sample, _first: int) -> Tally:
    return sample.tally()


def _with_values(
    measure: Callable[[Sample, np.ndarray], T],
    values: np.ndarray,
    start: int,
    sample: Sample,
    first: int,
) -> T:
    """Measure rows with their values; element i of `values` is of row start + i."""
    return measure(sample, values[first - start : first - start + len(sample)])


def _no_reports(oracle: FrequencyOracle) -> Reports:
    return np.empty(0, dtype=oracle.wire.dtype)


def _added(sum: Any, summary: Any) -> Any:
    """Return the sum plus one result, added in place if possible; None is the empty sum."""
    if sum is None:
        return summary
    sum += summary
    return sum


def _gathered(parts: Iterable[Part], enough: int) -> Iterator[tuple[Part, ...]]:
    """Yield consecutive parts together, with at least `enough` reports each time."""
    pending: list[Part] = []
    rows = 0
    for part in parts:
        pending.append(part)
        rows += part.n
        if rows >= enough:
            yield tuple(pending)
            pending, rows = [], 0
    if pending:
        yield tuple(pending)


def _of_parts(
    measure: IndexedMeasure[T],
    oracle: FrequencyOracle,
    parts: tuple[Part, ...],
    first: int,
    size: int,
) -> T:
    """Return the sum of `measure` over the blocks of some parts; `first` reports precede them.

    Raises ParameterError for a part whose number of reports is not what it states.
    """
    summed: Any = None
    for part in parts:
        read = 0
        for block, at in _blocks(oracle, part.arrays(), first, size):
            summed = _added(summed, measure(Sample(oracle, block), at))
            read += len(block)
        if read != part.n:
            raise ParameterError(f"a part has {read} reports, and should have {part.n}")
        first += read
    if summed is None:
        return measure(Sample(oracle, _no_reports(oracle)), first)
    return summed  # type: ignore[no-any-return]


def _blocks(
    oracle: FrequencyOracle, arrays: Iterable[Reports], first: int, size: int
) -> Iterator[tuple[Reports, int]]:
    """Yield the reports of some arrays in checked blocks, each with the number of its first one."""
    template = _no_reports(oracle)
    form = template.dtype, template.shape[1:]
    pending: list[Reports] = []
    rows = 0  # of the pending arrays
    for array in arrays:
        if not isinstance(array, np.ndarray) or (array.dtype, array.shape[1:]) != form:
            raise ParameterError(f"reports must be rows of the report type of {oracle.protocol}")
        start = 0
        while rows + len(array) - start >= size:
            stop = start + size - rows
            yield _checked(oracle, [*pending, array[start:stop]], first), first
            first, start, pending, rows = first + size, stop, [], 0
        if start < len(array):
            pending.append(array[start:])
            rows += len(array) - start
    if rows:
        yield _checked(oracle, pending, first), first


def _checked(oracle: FrequencyOracle, arrays: list[Reports], first: int) -> Reports:
    block = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    try:
        oracle.wire.check(block)
    except ReportError as error:
        raise ReportError(
            error.reason, None if error.position is None else first + error.position
        ) from None
    return block

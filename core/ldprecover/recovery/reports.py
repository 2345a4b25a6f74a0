"""The reports of a round, for the methods that look at each: read block by block, in passes that give sums.

A pass asks one function for a summary of each block of reports and adds the summaries. The function
can be pickled, so the blocks may be measured in other processes; nothing held grows with the
reports.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import closing
from typing import Any, TypeVar

import numpy as np

from ldprecover.errors import ParameterError, ReportError
from ldprecover.protocols import FrequencyOracle
from ldprecover.tally import Tally
from ldprecover.types import BoolArray, Int64Array, Reports

__all__ = ["ReportSource", "combinations", "pair_counts", "size_counts"]

T = TypeVar("T")

_CELLS = 1 << 22  # (report, item) pairs in a block: a block's support matrix takes 4 MB
_AHEAD = 2  # blocks handed to each worker before the first of them is waited for


class ReportSource:
    """Packed reports of one oracle: an array of them, or a function that returns arrays of them in turn.

    The function is called once for each pass over the reports and must yield the same reports in
    the same order each time; few blocks of them are held at once. It is not called before a method
    needs it.

    `executor` measures the blocks, in this thread where it is None: threads or processes, which
    receive each block pickled. After each block `progress` is called with the number of passes done
    before this one and the number of reports read in this one.
    """

    def __init__(
        self,
        oracle: FrequencyOracle,
        given: "Reports | Callable[[], Iterable[Reports]]",
        *,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if not callable(given) and not isinstance(given, np.ndarray):
            raise ParameterError("reports must be an array of packed reports, or a function that returns such arrays")
        self._oracle, self._given = oracle, given
        self._executor, self._progress = executor, progress
        self._rows = max(1, _CELLS // oracle.domain_size)
        self._passes = 0
        self._n: int | None = None
        self.failure: Exception | None = None
        """What the function raised that gives the reports: nobody else's fault."""

    @property
    def oracle(self) -> FrequencyOracle:
        """The oracle of the reports."""
        return self._oracle

    @property
    def n(self) -> int | None:
        """The number of reports; None before the first pass has counted them."""
        return self._n

    def total(self, measure: Callable[[FrequencyOracle, Reports], T], *, over: Sequence[np.ndarray] | None = None) -> T:
        """Return the sum of `measure(oracle, block)` over all blocks: one pass over the reports.

        Blocks are cut at the same reports whatever arrays these came in, and the summaries are
        added in the order of the blocks, so that also sums of floats repeat to the bit, with any
        executor. What `measure` returns must be new each time: it is added to in place where it can
        be. Without a report it is the measure of an empty block. For an executor of processes it
        must be picklable.

        `over` are arrays to measure in place of the reports: what an earlier pass made of each
        block. Raises ParameterError or ReportError for bytes that are not reports.
        """
        return self._sum(measure, over, indexed=False)

    def total_indexed(self, measure: Callable[[FrequencyOracle, Reports, int], T]) -> T:
        """Return the same of `measure(oracle, block, first)`, where `first` reports came before the block."""
        return self._sum(measure, None, indexed=True)

    def tally(self) -> Tally:
        """Return the tally of all the reports."""
        return self.total(Tally.of)

    def _arrays(self) -> Iterator[Reports]:
        try:
            yield from self._given() if callable(self._given) else (self._given,)
        except Exception as error:
            self.failure = error
            raise

    def blocks(self) -> Iterator[Reports]:
        """Yield all reports in order, some at a time. Raises ParameterError or ReportError for a bad report."""
        template = self._none()
        form = template.dtype, template.shape[1:]
        held: list[Reports] = []
        rows = first = 0  # held, and yielded before
        for array in self._arrays():
            if not isinstance(array, np.ndarray) or (array.dtype, array.shape[1:]) != form:
                raise ParameterError(f"reports must be rows of the report type of {self._oracle.protocol}")
            start = 0
            while rows + len(array) - start >= self._rows:
                stop = start + self._rows - rows
                yield self._checked([*held, array[start:stop]], first)
                first, start, held, rows = first + self._rows, stop, [], 0
            if start < len(array):
                held.append(array[start:])
                rows += len(array) - start
        if rows:
            yield self._checked(held, first)

    def _none(self) -> Reports:
        return np.empty(0, dtype=self._oracle.report_dtype)

    def _checked(self, arrays: list[Reports], first: int) -> Reports:
        block = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        try:
            self._oracle.check(block)
        except ReportError as error:
            raise ReportError(error.reason, None if error.position is None else first + error.position) from None
        return block

    def _sum(self, measure: Callable[..., T], over: Sequence[np.ndarray] | None, *, indexed: bool) -> T:
        def calls() -> Iterator[tuple[Any, ...]]:
            first = 0
            for block in self.blocks() if over is None else over:
                yield (self._oracle, block, first) if indexed else (self._oracle, block)
                first += len(block)

        total: Any = None
        read = 0
        with closing(self._results(measure, calls())) as results:
            for rows, result in results:
                if total is None:
                    total = result
                else:
                    total += result
                read += rows
                if self._progress is not None:
                    self._progress(self._passes, read)
        if self._n not in (None, read):
            raise ParameterError(f"reports must be the same in each pass, not {self._n} and then {read}")
        self._n = read
        self._passes += 1
        if total is None:
            return measure(self._oracle, self._none(), *([0] if indexed else []))
        return total  # type: ignore[no-any-return]

    def _results(self, measure: Callable[..., T], calls: Iterator[tuple[Any, ...]]) -> Generator[tuple[int, T]]:
        """Yield the rows of each block and what it measures, in order, a bounded number of blocks ahead."""
        if self._executor is None:
            for call in calls:
                yield len(call[1]), measure(*call)
            return
        # Only executors of concurrent.futures say how many workers they have.
        workers = getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1
        waiting: deque[tuple[int, Future[T]]] = deque()
        try:
            for call in calls:
                waiting.append((len(call[1]), self._executor.submit(measure, *call)))
                if len(waiting) >= _AHEAD * workers:
                    rows, future = waiting.popleft()
                    yield rows, future.result()
            while waiting:
                rows, future = waiting.popleft()
                yield rows, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


def combinations(bits: BoolArray) -> Int64Array:
    """Return each row of up to 24 bits as one number: bit i is column i."""
    # Floats, for numpy multiplies matrices of integers slowly: in single precision, exact below
    # 2^24.
    powers = np.exp2(np.arange(bits.shape[1], dtype=np.float32))
    return np.asarray((bits.astype(np.float32) @ powers).astype(np.int64))


def pair_counts(oracle: FrequencyOracle, reports: Reports, items: Int64Array) -> Int64Array:
    """Return how many reports support both of two items; the last row and column are of all reports.

    Row and column i are of items[i].
    """
    counts = np.empty((items.size + 1, items.size + 1), np.int64)
    counts[:-1, :-1] = oracle.pair_counts(reports, items)
    counts[:-1, -1] = counts[-1, :-1] = counts[:-1, :-1].diagonal()
    counts[-1, -1] = len(reports)
    return counts


def size_counts(oracle: FrequencyOracle, reports: Reports) -> Int64Array:
    """Return how many reports support k items, k = 0..d."""
    return np.bincount(oracle.support_sizes(reports), minlength=oracle.domain_size + 1)

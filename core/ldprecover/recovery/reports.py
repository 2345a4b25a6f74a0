"""The reports of a round, for the methods that look at each: read when needed, block by block, as often as needed."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ldprecover._types import BoolArray, Int64Array, Reports
from ldprecover.errors import ParameterError
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle
from ldprecover.tally import Tally

__all__ = ["ReportSource", "split", "supported"]

_CELLS = 1 << 22  # (report, item) pairs in a block: a block's support matrix takes 4 MB


class ReportSource:
    """Packed reports of one oracle: an array of them, or a function that returns arrays of them in turn.

    The function is called once for each pass over the reports and must yield the same reports in
    the same order each time; only one block is held. It is not called before a method needs it.
    """

    def __init__(self, oracle: FrequencyOracle, given: "Reports | Callable[[], Iterable[Reports]]") -> None:
        if not callable(given) and not isinstance(given, np.ndarray):
            raise ParameterError("reports must be an array of packed reports, or a function that returns such arrays")
        self._oracle, self._given = oracle, given
        self._rows = max(1, _CELLS // oracle.domain_size)

    def blocks(self) -> Iterator[Reports]:
        """Yield all reports in order, some at a time. Raises ParameterError or ReportError for what is none."""
        arrays = self._given() if callable(self._given) else (self._given,)
        template = np.empty(0, dtype=self._oracle.report_dtype)
        form = template.dtype, template.shape[1:]
        held: list[Reports] = []
        rows = 0
        for array in arrays:
            if not isinstance(array, np.ndarray) or (array.dtype, array.shape[1:]) != form:
                raise ParameterError(f"reports must be rows of the report type of {self._oracle.protocol}")
            held.append(array)
            rows += len(array)
            if rows >= self._rows:  # small arrays are joined, so that what a block costs beside its reports is little
                yield from self._checked(held)
                held, rows = [], 0
        if rows:
            yield from self._checked(held)

    def _checked(self, arrays: list[Reports]) -> Iterator[Reports]:
        joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        self._oracle.check(joined)
        for start in range(0, len(joined), self._rows):
            yield joined[start : start + self._rows]

    def tally(self) -> Tally:
        """Return the tally of all the reports."""
        total = Tally.empty(self._oracle.domain_size)
        for block in self.blocks():
            total += Tally.of(self._oracle, block)
        return total


def split(
    oracle: FrequencyOracle, source: ReportSource, suspicious: Callable[[Reports], BoolArray]
) -> tuple[Tally, Tally]:
    """Return the tallies of the reports that are not suspicious, and of those that are."""
    kept = dropped = Tally.empty(oracle.domain_size)
    for block in source.blocks():
        bad = suspicious(block)
        kept += Tally.of(oracle, block[~bad])
        dropped += Tally.of(oracle, block[bad])
    return kept, dropped


def supported(oracle: FrequencyOracle, reports: Reports, items: Int64Array) -> BoolArray:
    """Return the (n, len(items)) matrix 1[item in S(z)], without testing the other items."""
    if isinstance(oracle, OUE):
        bits = np.right_shift(reports[:, items // 8], (items % 8).astype(np.uint8)) & np.uint8(1)
        return bits.view(np.bool_)
    if isinstance(oracle, OLH):
        hashed = oracle.buckets(reports["seed"][:, None], items)
        hit: BoolArray = hashed == reports["bucket"][:, None]
        return hit
    if isinstance(oracle, GRR):
        named: BoolArray = reports[:, None] == items
        return named
    return oracle.supports(reports)[:, items]

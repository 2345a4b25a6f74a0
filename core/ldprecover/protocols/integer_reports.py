"""Protocols with few different reports, which are numbered and counted in a histogram."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldprecover import counting
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.types import Int64Array, Reports


@dataclass(frozen=True)
class IntegerReports(FrequencyOracle):
    """A protocol whose report is an integer below `summary_size`.

    The summary is the histogram of the reports.
    """

    @abstractmethod
    def hits(self, items: Int64Array) -> Int64Array:
        """Return the number of the items that each of the different reports supports."""

    def summarise(self, reports: Reports) -> Int64Array:
        return counting.grr_counts(reports, self.summary_size)

    def support_sizes(self, reports: Reports) -> Int64Array:
        return self._sizes[self.wire.rows(reports)]

    @cached_property
    def _sizes(self) -> Int64Array:
        """The number of items that each of the different reports supports."""
        return self.hits(np.arange(self.domain_size))

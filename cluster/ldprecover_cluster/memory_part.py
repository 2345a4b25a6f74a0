"""A part of a round whose reports are in memory, for workers that cannot read the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ldprecover.types import Reports


@dataclass(frozen=True)
class InMemoryPart:
    """A part of a round with its packed reports, in the oracle's report type."""

    data: bytes = field(repr=False)
    dtype: np.dtype[np.generic]

    @property
    def n(self) -> int:
        """The number of its reports."""
        return len(self.data) // self.dtype.itemsize

    @property
    def rows(self) -> Reports:
        """Its reports."""
        return np.frombuffer(self.data, dtype=self.dtype)

    def arrays(self) -> Iterator[Reports]:
        """Yield its reports."""
        yield self.rows

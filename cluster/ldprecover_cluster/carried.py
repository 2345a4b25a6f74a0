"""Reports that travel to whoever measures them, where no worker could read them itself."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ldprecover.types import Reports


@dataclass(frozen=True)
class CarriedPart:
    """A part of a round that holds its packed reports, of the type that its oracle reports in."""

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

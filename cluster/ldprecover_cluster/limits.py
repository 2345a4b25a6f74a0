"""Limits of a dataset's files, which writers keep and readers enforce."""

import numpy as np

PAIRS = 1 << 30
"""Largest number of (report, item) pairs in a part: about a second of counting."""

PARTS = 1 << 16
"""Number of parts from which on a part has more pairs."""

FILE_BYTES = 64 << 20
"""Largest part file in bytes."""

GROUP_BYTES = 1 << 22
"""Largest row group in bytes of packed reports."""

ROUND_FILE_BYTES = 64 << 20
"""Largest `_round.json` in bytes."""

ENTRY_BYTES = 160
"""Most bytes that a part takes there."""


def rows_per_group(form: np.dtype) -> int:
    """Return the largest number of reports in a row group; at least one."""
    return max(1, GROUP_BYTES // form.itemsize)

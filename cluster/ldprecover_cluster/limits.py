"""How large what is in a dataset may be: what writers keep to, and readers refuse."""

import numpy as np

PAIRS = 1 << 30
"""Pairs of a report and an item in a part: about a second of counting."""

FILE_BYTES = 64 << 20
"""Bytes of a part's file."""

GROUP_BYTES = 1 << 22
"""Bytes of reports in a row group, as they are packed."""

ROUND_FILE_BYTES = 64 << 20
"""Bytes of `round.json`."""


def rows_of_group(form: np.dtype) -> int:
    """Return the most reports that a row group has; one, where a report is larger than a row
    group.
    """
    return max(1, GROUP_BYTES // form.itemsize)

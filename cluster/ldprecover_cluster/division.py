"""How a round's reports are divided into the parts of a dataset: by hour, and by what one processor
counts in a second.

Within an hour each report goes to a part at random, and each part is shuffled, so that every order
of the hour's reports is as likely as any other.
"""

import math
import os
from collections.abc import Mapping

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover_cluster.columns import row_bytes
from ldprecover_cluster.limits import FILE_BYTES, PAIRS

FEW = 1_000
"""Reports that an hour has at the least, if need be with the hours after it: among so many each is
hidden.
"""

_BYTES = FILE_BYTES - (1 << 20)  # of reports in a file
_SPREADS = 8  # standard deviations of a part's size that are left for chance


def joined_hours(hours: Mapping[int, int]) -> dict[int, int]:
    """Return for each hour the hour whose folder has its reports, of hours with so many reports.

    Hours with fewer than FEW reports are joined until they have as many together; before an hour
    that has, or at the end, with those before them. The folder is of the earliest: who deletes by
    folder deletes no report later than its own hour tells, and few much earlier.
    """
    joined: list[list[int]] = []
    held = FEW  # in the last of these
    for hour in sorted(hours):
        if held < FEW and hours[hour] >= FEW and len(joined) > 1:
            joined[-2:] = [joined[-2] + joined[-1]]
            held = FEW
        if held >= FEW:
            joined.append([])
            held = 0
        joined[-1].append(hour)
        held += hours[hour]
    if held < FEW and len(joined) > 1:
        joined[-2:] = [joined[-2] + joined[-1]]
    return {hour: together[0] for together in joined for hour in together}


def number_of_parts(oracle: FrequencyOracle, n: int) -> int:
    """Return how many parts n reports of an hour are divided into, so that none is too large."""
    most = max(1, min(PAIRS // oracle.domain_size, _BYTES // row_bytes(oracle.report_dtype)))
    mean = max(1, most - math.ceil(_SPREADS * math.sqrt(most)))
    return max(1, math.ceil(n / mean))


def fresh_generator() -> np.random.Generator:
    """Return a generator under a key of the operating system's that nobody knows, and that is not
    kept.
    """
    return np.random.Generator(np.random.Philox(key=int.from_bytes(os.urandom(16))))

"""How a round's reports are divided into the parts of a dataset: by hour, then by size.

Within an hour each report goes to a random part, and each part is shuffled, so every order of the
hour's reports is equally likely. A part is what one processor counts in a second.
"""

import math
import os
from collections.abc import Mapping

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover_cluster.columns import row_bytes
from ldprecover_cluster.limits import FILE_BYTES, PAIRS, PARTS

MIN_REPORTS = 1_000
"""Fewest reports in an hour's folder, so that a report is hidden among many."""

_REPORT_BYTES = FILE_BYTES - (1 << 20)  # in a file; the rest is for Parquet's metadata
_SPREADS = 8  # margin for a part's random size, in standard deviations


def merge_small_hours(hours: Mapping[int, int]) -> dict[int, int]:
    """Return for each hour the hour whose folder contains its reports.

    `hours` is the number of reports by hour. Consecutive hours with fewer than MIN_REPORTS are
    merged until they have enough together; a remainder joins the hours before it. The folder has
    the name of the earliest hour: deleting by folder deletes no report too early by its own hour.
    """
    merged: list[list[int]] = []
    reports = MIN_REPORTS  # in the last group
    for hour in sorted(hours):
        if reports < MIN_REPORTS and hours[hour] >= MIN_REPORTS and len(merged) > 1:
            merged[-2:] = [merged[-2] + merged[-1]]
            reports = MIN_REPORTS
        if reports >= MIN_REPORTS:
            merged.append([])
            reports = 0
        merged[-1].append(hour)
        reports += hours[hour]
    if reports < MIN_REPORTS and len(merged) > 1:
        merged[-2:] = [merged[-2] + merged[-1]]
    return {hour: group[0] for group in merged for hour in group}


def part_count(oracle: FrequencyOracle, n: int, total: int) -> int:
    """Return the number of parts for n reports of an hour, so that no part exceeds the limits.

    `total` is the number of the round's reports.
    """
    counted = max(PAIRS // oracle.domain_size, math.ceil(total / PARTS))
    largest = max(1, min(counted, _REPORT_BYTES // row_bytes(oracle.wire.dtype)))
    mean = max(1, largest - math.ceil(_SPREADS * math.sqrt(largest)))
    return max(1, math.ceil(n / mean))


def secure_generator() -> np.random.Generator:
    """Return a generator with a secret key from the operating system, which is not stored."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(os.urandom(16))))

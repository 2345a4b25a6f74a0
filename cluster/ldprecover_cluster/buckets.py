"""Bucket shuffle: each report goes to a random bucket file, and each file is shuffled."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.types import Reports
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.folders import append, sync
from ldprecover_cluster.partitioning import merge_small_hours, part_count, secure_generator

_BUFFER_BYTES = 32 << 20  # reports in memory before they are written to buckets


@dataclass
class _Hour:
    """The buckets of an hour: index of the first, reports in each, and reports not yet written."""

    first: int
    sizes: np.ndarray
    buffer: list[bytes] = field(default_factory=list)


def fill(
    folder: Path,
    oracle: FrequencyOracle,
    hours: Mapping[int, int],
    pieces: Iterable[tuple[int, bytes]],
) -> list[tuple[int, int]]:
    """Write packed reports into bucket files; return hour and number of reports of each bucket.

    `hours` is the number of reports by hour. The position in the result is the bucket's index.
    Files are on disk on return. Raises ReportDatasetError if the pieces have other numbers of
    reports, and OSError.
    """
    folder_hours = merge_small_hours(hours)
    totals: Counter[int] = Counter()
    for hour, n in hours.items():
        totals[folder_hours[hour]] += n
    files: dict[int, _Hour] = {}
    first, total = 0, totals.total()
    for hour, n in sorted(totals.items()):
        number = part_count(oracle, n, total)
        files[hour] = _Hour(first, np.zeros(number, np.int64))
        first += number
    rng, remaining, buffered = secure_generator(), dict(hours), 0
    for hour, piece in pieces:
        n, fraction = divmod(len(piece), oracle.wire.size)
        if fraction or remaining.get(hour, 0) < n:
            raise ReportDatasetError("the round's reports differ in number or size from its counts")
        remaining[hour] -= n
        files[folder_hours[hour]].buffer.append(bytes(piece))
        buffered += len(piece)
        if buffered >= _BUFFER_BYTES:
            _flush(folder, files.values(), oracle.wire.size, rng)
            buffered = 0
    _flush(folder, files.values(), oracle.wire.size, rng)
    if any(remaining.values()):
        raise ReportDatasetError("the round has fewer reports than its counts say")
    buckets = [(hour, int(n)) for hour, group in files.items() for n in group.sizes]
    for index, (_, n) in enumerate(buckets):
        if n:
            sync(bucket_path(folder, index))
    return buckets


def _flush(folder: Path, hours: Iterable[_Hour], size: int, rng: np.random.Generator) -> None:
    """Append each buffered report to a random bucket of its hour."""
    for hour in hours:
        if not hour.buffer:
            continue
        rows = np.frombuffer(b"".join(hour.buffer), dtype=f"V{size}")
        hour.buffer.clear()
        number = len(hour.sizes)
        # The smaller type makes the stable sort a radix sort.
        dtype = np.uint16 if number <= 1 << 16 else np.uint32
        indices = rng.integers(0, number, len(rows), dtype=dtype)
        rows = rows.take(np.argsort(indices, kind="stable"))
        counts = np.bincount(indices, minlength=number)
        ends = np.cumsum(counts)
        for i in np.flatnonzero(counts).tolist():
            append(bucket_path(folder, hour.first + i), rows[ends[i] - counts[i] : ends[i]])
        hour.sizes += counts


def shuffled(path: Path, oracle: FrequencyOracle) -> Reports:
    """Return the reports of a file in uniformly random order. Raises OSError."""
    rows = np.fromfile(path, dtype=f"V{oracle.wire.size}")
    secure_generator().shuffle(rows)
    return np.frombuffer(rows.view(np.uint8), dtype=oracle.wire.dtype)


def bucket_path(folder: Path, index: int) -> Path:
    """Return the bucket file that becomes the part of this index."""
    return folder / f"bucket-{index:05}"

"""Reports on their way into a dataset: thrown into one file for each part at random, which is
shuffled on its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.types import Reports
from ldprecover_cluster.division import fresh_generator, joined_hours, number_of_parts
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.folders import append, synced

_HELD = 32 << 20  # bytes of reports that wait to be written


@dataclass
class _Hour:
    """The files of an hour: the place of the first, how many reports each has, and what waits to be
    thrown.
    """

    first: int
    sizes: np.ndarray
    waiting: list[bytes] = field(default_factory=list)


def fill(
    folder: Path,
    oracle: FrequencyOracle,
    hours: Mapping[int, int],
    pieces: Iterable[tuple[int, bytes]],
) -> list[tuple[int, int]]:
    """Write pieces of packed reports, each of an hour, into files of the folder; return the hour
    and n of each file.

    `hours` says how many reports each hour has. The files, `bucket_of` their places in the list,
    are on disk when it returns. Raises ReportDatasetError where the pieces have other numbers of
    reports, and OSError.
    """
    into = joined_hours(hours)
    totals = dict.fromkeys(into.values(), 0)
    for hour, n in hours.items():
        totals[into[hour]] += n
    found: dict[int, _Hour] = {}
    first = 0
    for hour, n in sorted(totals.items()):
        number = number_of_parts(oracle, n)
        found[hour] = _Hour(first, np.zeros(number, np.int64))
        first += number
    rng, left, waiting = fresh_generator(), dict(hours), 0
    for hour, piece in pieces:
        n, rest = divmod(len(piece), oracle.report_size)
        if rest or left.get(hour, 0) < n:
            raise ReportDatasetError(
                "the round's reports are not as many, or not as long, as they should be"
            )
        left[hour] -= n
        found[into[hour]].waiting.append(bytes(piece))
        waiting += len(piece)
        if waiting >= _HELD:
            _throw(folder, found.values(), oracle.report_size, rng)
            waiting = 0
    _throw(folder, found.values(), oracle.report_size, rng)
    if any(left.values()):
        raise ReportDatasetError("the round's reports are not as many as they should be")
    filled = [(hour, int(n)) for hour, files in found.items() for n in files.sizes]
    for place, (_, n) in enumerate(filled):
        if n:
            synced(bucket_of(folder, place))
    return filled


def _throw(folder: Path, hours: Iterable[_Hour], size: int, rng: np.random.Generator) -> None:
    """Append each report that waits to one of its hour's files, drawn at random."""
    for hour in hours:
        if not hour.waiting:
            continue
        rows = np.frombuffer(b"".join(hour.waiting), dtype=f"V{size}")
        hour.waiting.clear()
        number = len(hour.sizes)
        drawn = rng.integers(
            0, number, len(rows), dtype=np.uint16 if number <= 1 << 16 else np.uint32
        )
        rows = rows.take(np.argsort(drawn, kind="stable"))
        counts = np.bincount(drawn, minlength=number)
        ends = np.cumsum(counts)
        for place in np.flatnonzero(counts).tolist():
            append(
                bucket_of(folder, hour.first + place),
                rows[ends[place] - counts[place] : ends[place]],
            )
        hour.sizes += counts


def shuffled(path: Path, oracle: FrequencyOracle) -> Reports:
    """Return the reports of a file in random order: each order is as likely as any other. Raises
    OSError.
    """
    rows = np.fromfile(path, dtype=f"V{oracle.report_size}")
    fresh_generator().shuffle(rows)
    return np.frombuffer(rows.view(np.uint8), dtype=oracle.report_dtype)


def bucket_of(folder: Path, place: int) -> Path:
    """Return the file of reports that become the part of this place."""
    return folder / f"bucket-{place:05}"

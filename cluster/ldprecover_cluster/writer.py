"""Writes a dataset in two resumable steps: gather reports into buckets, then write each part.

Gathering appends each report to a random bucket file in a work folder. Once all are there, the
plan is written: from then on the source of the reports is not needed. Each bucket becomes one part,
written atomically; `_round.json` comes last. A later writer with a plan continues after the last
part, and without one starts from the beginning.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ldprecover import RoundExport
from ldprecover.counting.tally import Tally
from ldprecover.errors import LDPRecoverError
from ldprecover.protocols import FrequencyOracle
from ldprecover.rounds.report_files import ReportPart
from ldprecover.types import Reports
from ldprecover_cluster.buckets import bucket_path, fill, shuffled
from ldprecover_cluster.dataset import ROUND_FILE, ReportDataset, round_file
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.folders import (
    PARTIAL_SUFFIX,
    Folder,
    make_folder,
    translate_errors,
    write_atomically,
)
from ldprecover_cluster.limits import ENTRY_BYTES, ROUND_FILE_BYTES
from ldprecover_cluster.optional_imports import optional_module
from ldprecover_cluster.parts import encode, part_path

WORK = ".export"
"""Work folder inside an unfinished dataset."""

_PLAN, _DONE, _LOCK = "plan.json", "done.json", "lock"
_PAIRS = 1 << 22  # (report, item) pairs counted in one block
_CHECKPOINTS = 256  # times that the list of finished parts is written, each time whole

Progress = Callable[[int, int], None]
"""Called with the numbers of reports written and of all reports."""


class DatasetWriter:
    """Writes one dataset; a lock rejects a second writer of the same folder.

    Use it in `with`. Raises ReportDatasetError for errors of the file system.
    """

    def __init__(self, folder: str | Path, *, work: str | Path | None = None) -> None:
        self._folder = Folder(folder)
        self.url = self._folder.url
        """Absolute URL of the dataset."""
        self.work = _work_folder(self._folder) if work is None else Path(work)
        """Work folder."""
        self._lock: TextIO | None = None
        self._new_folders: list[Path] = []
        self._export: RoundExport | None = None
        self._buckets: list[tuple[int, int]] = []

    def __enter__(self) -> DatasetWriter:
        with translate_errors(str(self.work)):
            self._lock_work()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            # Without a plan the content cannot be resumed.
            if self.work.is_dir() and not self.has_plan:
                self._remove_work()
                for path in self._new_folders[1:]:
                    with contextlib.suppress(OSError):  # not empty
                        path.rmdir()
            self._lock.close()
            self._lock = None

    @property
    def has_plan(self) -> bool:
        """Whether the work folder is kept when the writer ends, so that `finish` can resume it."""
        return (self.work / _PLAN).exists()

    def unfinished(self) -> RoundExport | None:
        """Return the round of an unfinished export, which `finish` resumes; None without one.

        Raises ReportDatasetError if the folder contains a dataset or other files.
        """
        with translate_errors(str(self.work)):
            if self.has_plan:
                self._read_plan()
            else:
                self._check_empty()
        return self._export

    @property
    def hours(self) -> list[int]:
        """The sorted hours of gathered reports."""
        return sorted({hour for hour, _ in self._buckets})

    @property
    def missing(self) -> int:
        """The number of reports in the round's tally that were not gathered."""
        assert self._export is not None
        return self._export.tally.n - sum(n for _, n in self._buckets)

    def gather(
        self, export: RoundExport, hours: Mapping[int, int], pieces: Iterable[tuple[int, bytes]]
    ) -> None:
        """Write packed reports, in pieces of one hour each, to buckets, and then the plan.

        `hours` is the number of reports by hour. Everything is on disk on return.
        """
        optional_module("pyarrow.parquet")  # raises before the work if it is not installed
        with translate_errors(str(self.work)):
            self._clear()
            buckets = fill(self.work, export.parameters.oracle, hours, pieces)
            export = replace(export, reports=None)
            if len(round_file(export)) + len(buckets) * ENTRY_BYTES > ROUND_FILE_BYTES:
                raise ReportDatasetError(
                    f"{ROUND_FILE} would be larger than the limit of {ROUND_FILE_BYTES >> 20} MiB"
                )
            plan = {"folder": self._folder.url, "export": export.to_dict(), "buckets": buckets}
            write_atomically(self.work / _PLAN, json.dumps(plan).encode())
        self._export, self._buckets = export, buckets

    def finish(self, step: Progress = lambda done, total: None) -> ReportDataset:
        """Write the remaining parts and `_round.json`; return the dataset.

        Raises ReportDatasetError for an invalid report, and if the reports differ from the round's
        tally.
        """
        assert self._export is not None
        oracle, total = self._export.parameters.oracle, sum(n for _, n in self._buckets)
        parts, tally = self._read_done(oracle)
        indices = range(len(self._buckets))
        every = max(1, len(indices) // _CHECKPOINTS)
        with translate_errors(str(self.work)):
            self._remove_partial_files()
            finished = {part.name for part in parts}
            for group in (indices[first : first + every] for first in indices[::every]):
                for index in group:
                    (hour, n), name = self._buckets[index], f"part-{index:05}.parquet"
                    if n and name not in finished:
                        step(tally.n, total)
                        new, counted = self._write_part(index, hour, name, oracle)
                        parts.append(new)
                        tally += counted
                done = {"parts": [vars(part) for part in parts], "summary": tally.summary.tolist()}
                write_atomically(self.work / _DONE, json.dumps(done).encode())
                for index in group:
                    bucket_path(self.work, index).unlink(missing_ok=True)
        step(tally.n, total)
        self._check_sum(tally)
        complete = replace(self._export, reports=tuple(parts))
        self._folder.write(ROUND_FILE, round_file(complete))
        self._remove_work()
        return ReportDataset.open(self._folder.url)

    def discard(self) -> None:
        """Delete the work folder's content, and the parts of an unfinished export."""
        if not self._folder.exists(ROUND_FILE):
            for name in self._hours():
                self._folder.remove(name)
        with translate_errors(str(self.work)):
            self._clear()
        self._export = None

    def _write_part(
        self, index: int, hour: int, name: str, oracle: FrequencyOracle
    ) -> tuple[ReportPart, Tally]:
        reports = shuffled(bucket_path(self.work, index), oracle)
        try:
            tally = _counted(oracle, reports)
        except LDPRecoverError as error:
            raise ReportDatasetError(f"a report is invalid: {error}") from error
        part, data = encode(hour, name, reports, oracle.wire.dtype)
        if part.n != self._buckets[index][1]:
            raise ReportDatasetError(
                f"{bucket_path(self.work, index)} was changed; delete {self.work} and start again"
            )
        self._folder.write(part_path(hour, name), data)
        return part, tally

    def _check_sum(self, tally: Tally) -> None:
        """Raise ReportDatasetError if the written reports cannot be those of the round's tally."""
        assert self._export is not None
        whole = self._export.tally
        if tally.n == whole.n and tally == whole:
            return
        if tally.n >= whole.n or (tally.summary > whole.summary).any():
            raise ReportDatasetError(
                "the written reports differ from the round's counts; `ldprecover admin check` "
                "compares them in the database"
            )

    def _lock_work(self) -> None:
        """Make and lock the work folder."""
        self._new_folders = [path for path in (self.work, *self.work.parents) if not path.exists()]
        make_folder(self.work)
        status = self.work.lstat()
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.geteuid()
            or status.st_mode & 0o077
        ):
            raise ReportDatasetError(
                f"{self.work} must be a folder that you own and nobody else can read"
            )
        lock = os.open(self.work / _LOCK, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._lock = os.fdopen(lock, "a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            self._lock = None
            raise ReportDatasetError(f"another command is writing {self._folder}") from None

    def _check_empty(self) -> None:
        """Raise ReportDatasetError unless the folder is empty."""
        others = [name for name in self._folder.names() if name != WORK]
        if self._folder.exists(ROUND_FILE):
            content = f"already has a {ROUND_FILE}"
        elif self._hours():
            content = "has parts of another dataset"
        elif others:
            content = f"contains {others[0]}"
        else:
            return
        raise ReportDatasetError(f"{self._folder} {content}: name a new folder")

    def _hours(self) -> list[str]:
        return [name for name in self._folder.names() if name.startswith("hour=")]

    def _read_plan(self) -> None:
        with self._reading(_PLAN) as plan:
            export = RoundExport.from_dict(plan["export"])
            buckets = [(int(hour), int(n)) for hour, n in plan["buckets"]]
            url = plan["folder"]
        if url != self._folder.url:
            raise ReportDatasetError(
                f"{self.work} belongs to a dataset at {url}; delete it and start again"
            )
        self._export, self._buckets = export, buckets

    def _read_done(self, oracle: FrequencyOracle) -> tuple[list[ReportPart], Tally]:
        """Return the finished parts, and the tally of their reports."""
        if not (self.work / _DONE).exists():
            return [], Tally.empty(oracle.summary_size)
        with self._reading(_DONE) as done:
            parts = [ReportPart(**part) for part in done["parts"]]
            tally = Tally(np.array(done["summary"], dtype="<i8"), sum(part.n for part in parts))
        for part in parts:
            if not self._folder.exists(part_path(part.hour, part.name)):
                raise ReportDatasetError(
                    f"{part.name} has disappeared; delete {self._folder} and start again"
                )
        return parts, tally

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[Any]:
        """Yield the JSON in a work file. Raises ReportDatasetError if the block cannot read it."""
        path = self.work / name
        try:
            yield json.loads(path.read_bytes())
        except (LDPRecoverError, KeyError, TypeError, ValueError) as error:
            raise ReportDatasetError(
                f"{path} is damaged; delete {self.work} and start again"
            ) from error

    def _remove_partial_files(self) -> None:
        """Delete partial files of a writer that was killed."""
        if (local := self._folder.local) is not None:
            for path in (
                *local.glob(f".*{PARTIAL_SUFFIX}"),
                *local.glob(f"hour=*/.*{PARTIAL_SUFFIX}"),
            ):
                path.unlink()

    def _clear(self) -> None:
        """Delete the content of the work folder except the lock."""
        # The plan goes first: without it the rest is never resumed.
        (self.work / _PLAN).unlink(missing_ok=True)
        for path in self.work.iterdir():
            if path.name != _LOCK:
                path.unlink()

    def _remove_work(self) -> None:
        with translate_errors(str(self.work)), contextlib.suppress(FileNotFoundError):
            self._clear()
            shutil.rmtree(self.work)


def write_dataset(
    folder: str | Path,
    export: RoundExport,
    hours: Mapping[int, int],
    pieces: Iterable[tuple[int, bytes]],
) -> ReportDataset:
    """Write a round's packed reports, in pieces of one hour each, into a new dataset; return it.

    `hours` is the number of reports by hour since the epoch. An unfinished export is resumed.
    Raises ReportDatasetError if the reports differ from the export's tally.
    """
    with DatasetWriter(folder) as writer:
        if writer.unfinished() is None:
            writer.gather(export, hours, pieces)
        return writer.finish()


def _counted(oracle: FrequencyOracle, reports: Reports) -> Tally:
    """Check reports in blocks; return their tally."""
    tally = Tally.empty(oracle.summary_size)
    size = max(1, _PAIRS // oracle.domain_size)
    for first in range(0, len(reports), size):
        block = reports[first : first + size]
        oracle.wire.check(block)
        tally += Tally.of(oracle, block)
    return tally


def _work_folder(folder: Folder) -> Path:
    """Return the local work folder of a dataset: inside it if it is local, else temporary."""
    if folder.local is not None:
        return folder.local / WORK
    name = hashlib.sha256(folder.url.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"ldprecover-export-{name}"

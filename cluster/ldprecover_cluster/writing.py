"""A dataset is written: its reports are read once, then its parts made one by one, and what ended
halfway goes on.

Reading throws each report into a file beside the dataset, for the part it will be of. When all are
there the plan is written down: from then on nothing hangs on where the reports came from. Each part
is made of its file and put in its place whole; `round.json` comes last. Whoever begins again with a
plan goes on after the last part, and without one from the start.
"""

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
from ldprecover_cluster.buckets import bucket_of, fill, shuffled
from ldprecover_cluster.dataset import ROUND_FILE, ReportDataset, round_file
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.extra import parquet
from ldprecover_cluster.folders import HALF, Folder, make_folder, translated, write_whole
from ldprecover_cluster.parts import encode, place_of

WORK = ".export"
"""The folder in a dataset that is being written; what is in it is not the dataset's."""

_PLAN, _DONE, _LOCK = "plan.json", "done.json", "lock"
_CELLS = 1 << 22  # (report, item) pairs that are counted at once

Step = Callable[[int, int], None]
"""Is told how many reports are in their parts, and of how many."""


def work_of(folder: str | Path) -> Path:
    """Return the folder of this machine where a dataset's reports are on their way: in it, if it is
    here.
    """
    there = Folder(folder)
    if (local := there.local) is not None:
        return local / WORK
    name = hashlib.sha256(there.url.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"ldprecover-export-{name}"


class DatasetWriter:
    """Writes one dataset, alone: a second writer of the same folder is refused.

    Use it in `with`. Raises ReportDatasetError wherever a file system says no.
    """

    def __init__(self, folder: str | Path, *, work: str | Path | None = None) -> None:
        self._folder = Folder(folder)
        self.url = self._folder.url
        """Where the dataset is, absolute."""
        self.work = work_of(folder) if work is None else Path(work)
        """The folder of what is on its way."""
        self._lock: TextIO | None = None
        self._made: list[Path] = []
        self._export: RoundExport | None = None
        self._buckets: list[tuple[int, int]] = []

    def __enter__(self) -> "DatasetWriter":
        with translated(str(self.work)):
            self._take()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            # Without a plan nobody goes on with what is there.
            if self.work.is_dir() and not self.has_plan:
                self._remove_work()
                for made in self._made[1:]:
                    with contextlib.suppress(OSError):  # it has something in it
                        made.rmdir()
            self._lock.close()
            self._lock = None

    @property
    def has_plan(self) -> bool:
        """Whether what is on its way stays when the writer ends, for `finish` to go on with."""
        return (self.work / _PLAN).exists()

    def begun(self) -> RoundExport | None:
        """Return the round that an earlier writer has not ended, and `finish` goes on with; None
        where there is none.

        Raises ReportDatasetError where the folder has a dataset or other files.
        """
        with translated(str(self.work)):
            if self.has_plan:
                self._read_plan()
            else:
                self._check_empty()
        return self._export

    @property
    def hours(self) -> list[int]:
        """The hours of what was gathered, in order."""
        return sorted({hour for hour, _ in self._buckets})

    @property
    def missing(self) -> int:
        """The number of reports in the round's tally that were not gathered."""
        assert self._export is not None
        return self._export.tally.n - sum(n for _, n in self._buckets)

    def gather(
        self, export: RoundExport, hours: Mapping[int, int], pieces: Iterable[tuple[int, bytes]]
    ) -> None:
        """Take in the reports of a round: pieces of packed ones, each of an hour, and how many each
        hour has.

        When it returns they are on disk, and the plan is.
        """
        parquet()  # said at once if it is missing
        with translated(str(self.work)):
            self._clear()
            buckets = fill(self.work, export.parameters.oracle, hours, pieces)
            plan = {
                "folder": self._folder.url,
                "export": replace(export, reports=None).to_dict(),
                "buckets": buckets,
            }
            write_whole(self.work / _PLAN, json.dumps(plan).encode())
        self._export, self._buckets = export, buckets

    def finish(self, step: Step = lambda done, of: None) -> ReportDataset:
        """Make the parts that are not made yet, and the round's file; return the dataset.

        Each part's reports are counted. Raises ReportDatasetError for one that is no report of the
        round, and where all of them do not give the round's tally.
        """
        assert self._export is not None
        oracle, total = self._export.parameters.oracle, sum(n for _, n in self._buckets)
        parts, tally = self._read_done(oracle)
        with translated(str(self.work)):
            self._remove_halves()
            made = {part.name for part in parts}
            for place, (hour, n) in enumerate(self._buckets):
                name = f"part-{place:05}.parquet"
                if n and name not in made:
                    step(tally.n, total)
                    part, counted = self._make(place, hour, name, oracle)
                    parts, tally = [*parts, part], tally + counted
                    done = {
                        "parts": [vars(each) for each in parts],
                        "summary": tally.summary.tolist(),
                    }
                    write_whole(self.work / _DONE, json.dumps(done).encode())
                bucket_of(self.work, place).unlink(missing_ok=True)
        step(tally.n, total)
        self._check_sum(tally)
        complete = replace(self._export, reports=tuple(parts))
        self._folder.write(ROUND_FILE, round_file(complete))
        self._remove_work()
        return ReportDataset.open(self._folder.url)

    def discard(self) -> None:
        """Delete what is on its way, and the parts that an export that did not end has written.

        Nobody else writes the folder before this writer ends.
        """
        if not self._folder.exists(ROUND_FILE):
            for name in self._hours():
                self._folder.remove(name)
        with translated(str(self.work)):
            self._clear()
        self._export = None

    def _make(
        self, place: int, hour: int, name: str, oracle: FrequencyOracle
    ) -> tuple[ReportPart, Tally]:
        reports = shuffled(bucket_of(self.work, place), oracle)
        try:
            tally = _counted(oracle, reports)
        except LDPRecoverError as error:
            raise ReportDatasetError(
                f"a report that was read is none of the round's: {error}"
            ) from error
        part, data = encode(hour, name, reports, oracle.report_dtype)
        if part.n != self._buckets[place][1]:
            raise ReportDatasetError(
                f"{bucket_of(self.work, place)} was changed; delete {self.work} and begin again"
            )
        self._folder.write(place_of(hour, name), data)
        return part, tally

    def _check_sum(self, tally: Tally) -> None:
        """See that the reports that were written are those of the round's tally, or some of
        them.
        """
        assert self._export is not None
        whole = self._export.tally
        if tally.n == whole.n and tally == whole:
            return
        if tally.n >= whole.n or (tally.summary > whole.summary).any():
            raise ReportDatasetError(
                "the reports that were written do not give the round's counts; `ldprecover check` "
                "compares them in the "
                "database"
            )

    def _take(self) -> None:
        """Take the folder of what is on its way for this writer alone."""
        self._made = [path for path in (self.work, *self.work.parents) if not path.exists()]
        make_folder(self.work)
        found = self.work.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ReportDatasetError(
                f"{self.work} must be a folder of yours that nobody else can read"
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
        """See that a new dataset is put where none is."""
        if self._folder.exists(ROUND_FILE):
            raise ReportDatasetError(
                f"{self._folder} has a {ROUND_FILE} already: name a new folder"
            )
        if self._hours():
            raise ReportDatasetError(
                f"{self._folder} has parts of another dataset: name a new folder"
            )
        if others := [name for name in self._folder.names() if name != WORK]:
            raise ReportDatasetError(
                f"{self._folder} is not empty, it has {others[0]}: name a new folder"
            )

    def _hours(self) -> list[str]:
        return [name for name in self._folder.names() if name.startswith("hour=")]

    def _read_plan(self) -> None:
        plan = _read(self.work / _PLAN)
        try:
            export = RoundExport.from_dict(plan["export"])
            buckets = [(int(hour), int(n)) for hour, n in plan["buckets"]]
            where = plan["folder"]
        except (LDPRecoverError, KeyError, TypeError, ValueError) as error:
            raise ReportDatasetError(
                f"{self.work / _PLAN} is damaged; delete {self.work} and begin again"
            ) from error
        if where != self._folder.url:
            raise ReportDatasetError(
                f"{self.work} is of a dataset at {where}; delete it and begin again"
            )
        self._export, self._buckets = export, buckets

    def _read_done(self, oracle: FrequencyOracle) -> tuple[list[ReportPart], Tally]:
        """Return the parts that are made, and the tally of their reports."""
        path = self.work / _DONE
        if not path.exists():
            return [], Tally.empty(oracle.summary_size)
        done = _read(path)
        try:
            parts = [ReportPart(**part) for part in done["parts"]]
            tally = Tally(np.array(done["summary"], dtype="<i8"), sum(part.n for part in parts))
        except (LDPRecoverError, KeyError, TypeError, ValueError) as error:
            raise ReportDatasetError(
                f"{path} is damaged; delete {self.work} and begin again"
            ) from error
        for part in parts:
            if not self._folder.exists(place_of(part.hour, part.name)):
                raise ReportDatasetError(
                    f"{part.name} was there, and is not; delete {self._folder} and begin again"
                )
        return parts, tally

    def _remove_halves(self) -> None:
        """Delete what a writer that was killed has left of a part."""
        if (local := self._folder.local) is not None:
            for half in (*local.glob(f".*{HALF}"), *local.glob(f"hour=*/.*{HALF}")):
                half.unlink()

    def _clear(self) -> None:
        """Delete all that is on its way, but not the lock."""
        # The plan goes first: without it nobody goes on with what is left.
        (self.work / _PLAN).unlink(missing_ok=True)
        for path in self.work.iterdir():
            if path.name != _LOCK:
                path.unlink()

    def _remove_work(self) -> None:
        with translated(str(self.work)), contextlib.suppress(FileNotFoundError):
            # The plan goes first: without it nobody goes on with what is left.
            (self.work / _PLAN).unlink(missing_ok=True)
            shutil.rmtree(self.work)


def write_dataset(
    folder: str | Path,
    export: RoundExport,
    hours: Mapping[int, int],
    pieces: Iterable[tuple[int, bytes]],
) -> ReportDataset:
    """Write a round's reports into a new dataset and return it: pieces of packed reports, each of
    an hour.

    `hours` says how many reports each hour, since the epoch, has. One that ended halfway goes on.
    Raises ReportDatasetError where the reports do not give the export's tally, or some of it.
    """
    with DatasetWriter(folder) as writer:
        if writer.begun() is None:
            writer.gather(export, hours, pieces)
        return writer.finish()


def _counted(oracle: FrequencyOracle, reports: Reports) -> Tally:
    """Return the tally of reports, which are checked, some at a time."""
    tally = Tally.empty(oracle.summary_size)
    for block in _blocks(reports, max(1, _CELLS // oracle.domain_size)):
        oracle.check(block)
        tally += Tally.of(oracle, block)
    return tally


def _blocks(reports: Reports, size: int) -> Iterator[Reports]:
    for first in range(0, len(reports), size):
        yield reports[first : first + size]


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None

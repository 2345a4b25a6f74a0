"""A dataset has all of a round's reports and no others, each hidden among those of its hour."""

import json
import multiprocessing
import os
import resource
import stat
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.cluster.conftest import MakeRound

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.types import Reports
from ldprecover_cluster import (
    DatasetWriter,
    ReportDataset,
    ReportDatasetError,
    buckets,
    limits,
    partitioning,
    write_dataset,
    writer,
)
from ldprecover_cluster.dataset import round_file

pytest.importorskip(
    "pyarrow", reason="a report dataset needs the extra: pip install 'ldprecover[cluster]'"
)

HOURS = {470_000: 3_000, 470_001: 400, 470_005: 1_700, 470_009: 100}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a part have about a thousand reports."""
    monkeypatch.setattr("ldprecover_cluster.partitioning.PAIRS", 11 * 1_500)


def by_hour(reports: Reports, hours: dict[int, int]) -> Iterator[tuple[int, bytes]]:
    """Yield consecutive reports by hour, 700 at a time."""
    first = 0
    for hour, n in hours.items():
        for start in range(first, first + n, 700):
            yield hour, reports[start : min(start + 700, first + n)].tobytes()
        first += n


def write(
    folder: Path | str,
    export: RoundExport,
    reports: Reports,
    hours: dict[int, int] | None = None,
) -> ReportDataset:
    """Write reports as a dataset, by default of one hour."""
    hours = hours or {5: len(reports)}
    return write_dataset(folder, export, hours, by_hour(reports, hours))


def gather(writer: DatasetWriter, export: RoundExport, reports: Reports) -> None:
    """Gather reports of one hour."""
    hours = {5: len(reports)}
    writer.gather(export, hours, by_hour(reports, hours))


def resume(folder: Path) -> ReportDataset:
    """Finish an unfinished export."""
    with DatasetWriter(folder) as writer:
        assert writer.unfinished() is not None
        return writer.finish()


def rows(reports: Reports) -> Counter[bytes]:
    return Counter(each.tobytes() for each in reports)


def read(dataset: ReportDataset, hour: int | None = None) -> Reports:
    """Return the reports of an hour, or of all."""
    parts = [part for part in dataset.parts if hour in (None, part.hour)]
    return np.concatenate([array for part in parts for array in part.arrays()])


def test_each_hour_has_its_reports(make_any: MakeRound, tmp_path: Path) -> None:
    """Together they give the tally."""
    export, reports = make_any(sum(HOURS.values()))
    folder = tmp_path / "round"
    dataset = write(folder, export, reports, HOURS)
    assert Tally.of(export.parameters.oracle, read(dataset)) == export.tally
    # The hours of 400 and of 100 reports are merged into the hours before them.
    for hour, first, n in ((470_000, 0, 3_400), (470_005, 3_400, 1_800)):
        assert rows(read(dataset, hour)) == rows(reports[first : first + n])
    assert len(dataset.parts) > 3
    assert (dataset.n, dataset.missing) == (len(reports), 0)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"_round.json", *(f"hour={part.hour}/{part.name}" for part in dataset.parts)}
    for path in (folder, *folder.rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_round_file_is_an_export(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(1_200)
    write(tmp_path, export, reports)
    copy = RoundExport.from_json((tmp_path / "_round.json").read_bytes())
    fields = ("round", "name", "parameters", "tally")
    assert [getattr(copy, field) for field in fields] == [
        getattr(export, field) for field in fields
    ]
    assert copy.reports is not None
    assert sum(part.n for part in copy.reports) == 1_200


def test_small_round_has_one_hour_and_empty_round_none(
    make_round: MakeRound, tmp_path: Path
) -> None:
    export, reports = make_round(900)
    small = write(tmp_path / "small", export, reports, {7: 300, 9: 300, 11: 300})
    assert {part.hour for part in small.parts} == {7}
    export, reports = make_round(0)
    assert write(tmp_path / "empty", export, reports).parts == ()


def test_resumes_without_rewriting_finished_parts(make_any: MakeRound, tmp_path: Path) -> None:
    export, reports = make_any(6_000)

    def stop_after_two(done: int, total: int) -> None:
        if done >= 2_000:
            raise KeyboardInterrupt

    with DatasetWriter(tmp_path) as writer:
        gather(writer, export, reports)
        with pytest.raises(KeyboardInterrupt):
            writer.finish(stop_after_two)
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob("hour=*/*")}
    assert len(finished) >= 2
    with pytest.raises(ReportDatasetError, match="its export is unfinished"):
        ReportDataset.open(tmp_path)
    partial = tmp_path / "hour=5" / ".part-00004.parquet.123.half"  # of a killed process
    partial.write_bytes(b"PAR1")
    dataset = resume(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert Tally.of(export.parameters.oracle, read(dataset)) == export.tally
    assert {path.name for path in tmp_path.iterdir()} == {"_round.json", "hour=5"}
    assert not partial.exists()


def test_notices_that_a_finished_part_was_deleted(make_round: MakeRound, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with DatasetWriter(tmp_path) as writer:
        gather(writer, *make_round(6_000))
        with pytest.raises(KeyboardInterrupt):
            writer.finish(stop)
    next(tmp_path.glob("hour=*/*.parquet")).unlink()
    with pytest.raises(ReportDatasetError, match="has disappeared"):
        resume(tmp_path)


def test_interrupted_gathering_starts_again(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(3_000)

    def interrupted() -> Iterator[tuple[int, bytes]]:
        yield from list(by_hour(reports, {5: 3_000}))[:2]
        raise KeyboardInterrupt

    with DatasetWriter(tmp_path) as writer, pytest.raises(KeyboardInterrupt):
        writer.gather(export, {5: 3_000}, interrupted())
    assert list(tmp_path.iterdir()) == []
    assert rows(read(write(tmp_path, export, reports))) == rows(reports)


def test_rejects_a_second_writer(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path), pytest.raises(ReportDatasetError, match="another command"):
        DatasetWriter(tmp_path).__enter__()


def test_overwrites_neither_datasets_nor_other_files(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(1_000)
    write(tmp_path / "a", export, reports)
    with pytest.raises(ReportDatasetError, match=r"already has a _round\.json"):
        write(tmp_path / "a", export, reports)
    (tmp_path / "a" / "_round.json").unlink()
    with pytest.raises(ReportDatasetError, match="parts of another dataset"):
        write(tmp_path / "a", export, reports)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "notes.txt").write_text("mine")
    with pytest.raises(ReportDatasetError, match=r"contains notes\.txt"):
        write(tmp_path / "b", export, reports)
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["notes.txt"]


def test_replaces_a_work_folder_without_a_plan(make_round: MakeRound, tmp_path: Path) -> None:
    (tmp_path / ".export").mkdir(mode=0o700)
    (tmp_path / ".export" / "bucket-00000").write_bytes(b"1234")  # of a killed writer
    assert write(tmp_path, *make_round(1_000)).n == 1_000


@pytest.mark.parametrize(
    ("name", "kind"),
    [("file", "a file, not a folder"), ("file/x", "a file, not"), ("link", "a broken link")],
)
def test_rejects_a_path_that_is_not_a_folder(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    path = tmp_path / name.partition("/")[0]
    with pytest.raises(ReportDatasetError, match=f"^{path} is {kind}"):
        DatasetWriter(tmp_path / name).__enter__()


def test_unfinished_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "round"
    with DatasetWriter(folder):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert modes == {".export": 0o700, "lock": 0o600}


def test_rejects_reports_that_differ_from_the_tally(make_any: MakeRound, tmp_path: Path) -> None:
    export, reports = make_any(2_000)
    others = export.parameters.oracle.perturb(np.full(2_000, 3), np.random.default_rng(4))
    with pytest.raises(ReportDatasetError, match="differ from the round's counts"):
        write(tmp_path / "others", export, others)
    pieces = list(by_hour(reports, {5: 2_000}))
    for n in (2_001, 1_999):
        with pytest.raises(ReportDatasetError, match=r"differ|fewer reports"):
            write_dataset(tmp_path / f"{n}", export, {5: n}, pieces)
    assert not list(tmp_path.rglob("_round.json"))


def test_counts_missing_reports(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(2_000)
    dataset = write(tmp_path, export, reports[:1_500])
    assert (dataset.n, dataset.missing, dataset.export.tally) == (1_500, 500, export.tally)


def test_resumes_after_the_disk_was_full(make_round: MakeRound, tmp_path: Path) -> None:
    """The limit of a file's size stands for the end of the disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with DatasetWriter(tmp_path) as writer:
        gather(writer, *make_round(6_000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            with pytest.raises(ReportDatasetError, match=r"the disk of .* is full"):
                writer.finish()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.glob("hour=*/part-*"))
    assert resume(tmp_path).n == 6_000


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_writes_to_a_url(
    make_round: MakeRound, tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    url = f"{scheme}://{tmp_path}/round"
    export, reports = make_round(2_000)
    assert write(url, export, reports).url == url
    assert rows(read(ReportDataset.open(url))) == rows(reports)
    assert not list(tmp_path.glob("ldprecover-export-*"))


def test_every_order_of_an_hour_is_equally_likely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 24 orders in 960 runs; chi squared with 23 degrees of freedom is above 60 once in 25,000
    runs.
    """
    monkeypatch.setattr(buckets, "part_count", lambda oracle, n, total: 2)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    oracle = RoundParameters("grr", 1.0, tuple("abcd")).oracle
    reports = np.arange(4, dtype="<u4")
    orders: Counter[tuple[int, ...]] = Counter()
    for _ in range(960):
        buckets.fill(tmp_path, oracle, {5: 4}, [(5, reports.tobytes())])
        order = []
        for path in sorted(tmp_path.iterdir()):
            order += buckets.shuffled(path, oracle).tolist()
            path.unlink()
        orders[tuple(order)] += 1
    assert sum((n - 40) ** 2 / 40 for n in orders.values()) + 40 * (24 - len(orders)) < 60


def test_writes_no_list_of_parts_that_readers_reject(
    make_round: MakeRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, reports = make_round(6_000)
    limit = len(round_file(export)) + 3 * limits.ENTRY_BYTES
    monkeypatch.setattr(writer, "ROUND_FILE_BYTES", limit)
    with pytest.raises(ReportDatasetError, match=r"_round\.json would be larger than the limit of"):
        write(tmp_path / "many", export, reports)
    assert not (tmp_path / "many").exists()
    monkeypatch.setattr(partitioning, "PARTS", 2)  # so that each has more reports
    assert len(write(tmp_path / "few", export, reports).parts) == 3
    assert (tmp_path / "few" / "_round.json").stat().st_size <= limit


def test_rejects_a_plan_of_another_folder_and_a_damaged_plan(
    make_round: MakeRound, tmp_path: Path
) -> None:
    with DatasetWriter(tmp_path / "a") as writer:
        gather(writer, *make_round(1_000))
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(ReportDatasetError, match="belongs to a dataset at"):
        resume(tmp_path / "b")
    plan = tmp_path / "b" / ".export" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"buckets": 3}))
    with pytest.raises(ReportDatasetError, match="is damaged"):
        resume(tmp_path / "b")


def peak_of_filling(folder: Path, number: int) -> int:
    """Return the most bytes that writing this many pieces of 10,000 reports takes."""
    buckets._BUFFER_BYTES = 1 << 18
    oracle = RoundParameters("olh", 1.0, tuple("abcd")).oracle
    piece = bytes(10_000 * oracle.wire.size)
    folder.mkdir()
    tracemalloc.start()
    buckets.fill(folder, oracle, {5: number * 10_000}, ((5, piece) for _ in range(number)))
    return tracemalloc.get_traced_memory()[1]


def test_memory_does_not_grow_with_the_reports(tmp_path: Path) -> None:
    """Each in a new process, where no thread of another test allocates."""
    peaks = []
    for number in (10, 100):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            peaks.append(pool.submit(peak_of_filling, tmp_path / str(number), number).result())
    assert peaks[1] < 1.2 * peaks[0] < 4 << 20

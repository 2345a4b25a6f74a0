"""A dataset is written: all of a round's reports and no others, hidden among those of their
hour.
"""

import json
import os
import stat
import tracemalloc
from collections import Counter
from collections.abc import Iterator
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
    write_dataset,
)

pytest.importorskip(
    "pyarrow", reason="a report dataset needs the extra: pip install 'ldprecover[cluster]'"
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has some thousand reports of the test's rounds at the most."""
    monkeypatch.setattr("ldprecover_cluster.partitioning.PAIRS", 11 * 1_500)


def by_hour(reports: Reports, hours: dict[int, int]) -> Iterator[tuple[int, bytes]]:
    """Yield reports as those of hours, in the order in which they came, some at a time."""
    first = 0
    for hour, n in hours.items():
        for start in range(first, first + n, 700):
            yield hour, reports[start : min(start + 700, first + n)].tobytes()
        first += n


def rows(reports: Reports) -> Counter[bytes]:
    return Counter(each.tobytes() for each in reports)


def read(dataset: ReportDataset, hour: int | None = None) -> Reports:
    return np.concatenate(
        [array for part in dataset.parts if hour in (None, part.hour) for array in part.arrays()]
    )


HOURS = {470_000: 3_000, 470_001: 400, 470_005: 1_700, 470_009: 100}


def test_each_hour_has_its_reports_and_they_give_the_tally(
    make_any: MakeRound, tmp_path: Path
) -> None:
    export, reports = make_any(sum(HOURS.values()))
    dataset = write_dataset(tmp_path / "round", export, HOURS, by_hour(reports, HOURS))
    oracle = export.parameters.oracle
    assert Tally.of(oracle, read(dataset)) == export.tally
    # The hours of 400 and of 100 reports are joined with a neighbour, and stand under the earlier
    # hour.
    for hour, first, n in ((470_000, 0, 3_400), (470_005, 3_400, 1_800)):
        assert rows(read(dataset, hour)) == rows(reports[first : first + n])
    assert len(dataset.parts) > 3
    assert (dataset.n, dataset.missing) == (len(reports), 0)
    found = {
        str(path.relative_to(tmp_path / "round"))
        for path in (tmp_path / "round").rglob("*")
        if path.is_file()
    }
    assert found == {"round.json", *(f"hour={part.hour}/{part.name}" for part in dataset.parts)}


def test_the_rounds_file_is_an_export_as_any(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(1_200)
    write_dataset(tmp_path, export, {5: 1_200}, by_hour(reports, {5: 1_200}))
    again = RoundExport.from_json((tmp_path / "round.json").read_bytes())
    assert (again.round, again.name, again.parameters) == (
        export.round,
        export.name,
        export.parameters,
    )
    assert again.tally == export.tally
    assert again.reports is not None
    assert sum(part.n for part in again.reports) == 1_200


def test_a_small_round_is_of_one_hour_and_an_empty_one_of_none(
    make_round: MakeRound, tmp_path: Path
) -> None:
    export, reports = make_round(900)
    hours = {7: 300, 9: 300, 11: 300}
    assert {
        part.hour
        for part in write_dataset(tmp_path / "small", export, hours, by_hour(reports, hours)).parts
    } == {7}
    export, _ = make_round(0)
    assert write_dataset(tmp_path / "empty", export, {}, []).parts == ()


def test_files_are_for_their_owner_alone(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(2_000)
    write_dataset(tmp_path / "round", export, {5: 2_000}, by_hour(reports, {5: 2_000}))
    for path in [tmp_path / "round", *(tmp_path / "round").rglob("*")]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_what_ended_halfway_goes_on_and_leaves_finished_parts_alone(
    make_any: MakeRound, tmp_path: Path
) -> None:
    export, reports = make_any(6_000)

    def stop_after_two(done: int, of: int) -> None:
        if done >= 2_000:
            raise KeyboardInterrupt

    with DatasetWriter(tmp_path) as writer:
        writer.gather(export, {5: 6_000}, by_hour(reports, {5: 6_000}))
        with pytest.raises(KeyboardInterrupt):
            writer.finish(stop_after_two)
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob("hour=*/*")}
    assert len(finished) >= 2
    with pytest.raises(ReportDatasetError, match="its export is unfinished"):
        ReportDataset.open(tmp_path)
    half = tmp_path / "hour=5" / ".part-00004.parquet.123.half"  # of a process that was killed
    half.write_bytes(b"PAR1")
    with DatasetWriter(tmp_path) as writer:
        assert writer.unfinished() is not None
        dataset = writer.finish()
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert Tally.of(export.parameters.oracle, read(dataset)) == export.tally
    assert {path.name for path in tmp_path.iterdir()} == {"round.json", "hour=5"}
    assert not half.exists()


def test_a_finished_part_that_somebody_deleted_is_missed(
    make_round: MakeRound, tmp_path: Path
) -> None:
    export, reports = make_round(6_000)

    def stop(done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    with DatasetWriter(tmp_path) as writer:
        writer.gather(export, {5: 6_000}, by_hour(reports, {5: 6_000}))
        with pytest.raises(KeyboardInterrupt):
            writer.finish(stop)
    next(tmp_path.glob("hour=*/*.parquet")).unlink()
    with DatasetWriter(tmp_path) as writer:
        assert writer.unfinished() is not None
        with pytest.raises(ReportDatasetError, match="has disappeared"):
            writer.finish()


def test_reading_that_ended_halfway_begins_anew(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(3_000)

    def breaks_off() -> Iterator[tuple[int, bytes]]:
        yield from list(by_hour(reports, {5: 3_000}))[:2]
        raise KeyboardInterrupt

    with DatasetWriter(tmp_path) as writer, pytest.raises(KeyboardInterrupt):
        writer.gather(export, {5: 3_000}, breaks_off())
    assert list(tmp_path.iterdir()) == []  # no report is left that nobody goes on with
    dataset = write_dataset(tmp_path, export, {5: 3_000}, by_hour(reports, {5: 3_000}))
    assert rows(read(dataset)) == rows(reports)


def test_two_do_not_write_one_dataset(make_round: MakeRound, tmp_path: Path) -> None:
    with DatasetWriter(tmp_path), pytest.raises(ReportDatasetError, match="another command"):
        DatasetWriter(tmp_path).__enter__()


def test_nothing_is_written_over_a_dataset(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(1_000)
    write_dataset(tmp_path, export, {5: 1_000}, by_hour(reports, {5: 1_000}))
    with pytest.raises(ReportDatasetError, match=r"already has a round\.json"):
        write_dataset(tmp_path, export, {5: 1_000}, by_hour(reports, {5: 1_000}))
    (tmp_path / "round.json").unlink()
    with pytest.raises(ReportDatasetError, match="parts of another dataset"):
        write_dataset(tmp_path, export, {5: 1_000}, by_hour(reports, {5: 1_000}))


def test_a_folder_with_other_files_is_left_as_it_was(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(1_000)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ReportDatasetError, match=r"contains notes\.txt"):
        write_dataset(tmp_path, export, {5: 1_000}, by_hour(reports, {5: 1_000}))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_a_killed_writer_left_without_a_plan_is_no_other_file(
    make_round: MakeRound, tmp_path: Path
) -> None:
    export, reports = make_round(1_000)
    (tmp_path / ".export").mkdir(mode=0o700)
    (tmp_path / ".export" / "bucket-00000").write_bytes(b"1234")
    assert write_dataset(tmp_path, export, {5: 1_000}, by_hour(reports, {5: 1_000})).n == 1_000


def test_what_is_no_folder_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, what in (
        ("file", "a file, not a folder"),
        ("file/x", "a file, not"),
        ("link", "a broken link"),
    ):
        with pytest.raises(
            ReportDatasetError, match=f"^{tmp_path / name.partition('/')[0]} is {what}"
        ):
            DatasetWriter(tmp_path / name).__enter__()


def test_while_a_dataset_is_written_all_of_it_is_its_owners_alone(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "round"):
        found = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "round").rglob("*")
        }
    assert found == {".export": 0o700, "lock": 0o600}


def test_reports_that_do_not_give_the_tally_are_no_dataset(
    make_any: MakeRound, tmp_path: Path
) -> None:
    export, reports = make_any(2_000)
    oracle = export.parameters.oracle
    others = oracle.perturb(np.full(2_000, 3), np.random.default_rng(4))
    with pytest.raises(ReportDatasetError, match="differ from the round's counts"):
        write_dataset(tmp_path / "others", export, {5: 2_000}, by_hour(others, {5: 2_000}))
    for hours in ({5: 2_001}, {5: 1_999}):
        with pytest.raises(ReportDatasetError, match=r"differ|fewer reports"):
            write_dataset(
                tmp_path / f"{hours[5]}",
                export,
                hours,
                ((5, piece) for _, piece in by_hour(reports, {5: 2_000})),
            )
    assert not list(tmp_path.rglob("round.json"))


def test_some_of_the_reports_are_a_dataset_that_says_so(
    make_round: MakeRound, tmp_path: Path
) -> None:
    export, reports = make_round(2_000)
    dataset = write_dataset(tmp_path, export, {5: 1_500}, by_hour(reports[:1_500], {5: 1_500}))
    assert (dataset.n, dataset.missing, dataset.export.tally) == (1_500, 500, export.tally)


def test_a_full_disk_is_said_and_the_same_goes_on(make_round: MakeRound, tmp_path: Path) -> None:
    """The limit of a file's size stands for the end of the disk."""
    import resource

    export, reports = make_round(6_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with DatasetWriter(tmp_path) as writer:
        writer.gather(export, {5: 6_000}, by_hour(reports, {5: 6_000}))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            with pytest.raises(ReportDatasetError, match=r"the disk of .* is full"):
                writer.finish()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.glob("hour=*/part-*"))
    with DatasetWriter(tmp_path) as writer:
        assert writer.unfinished() is not None
        assert writer.finish().n == 6_000


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_a_dataset_may_be_behind_a_url(
    make_round: MakeRound, tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    url = f"{scheme}://{tmp_path}/round"
    export, reports = make_round(2_000)
    dataset = write_dataset(url, export, {5: 2_000}, by_hour(reports, {5: 2_000}))
    assert dataset.url == url
    assert rows(read(ReportDataset.open(url))) == rows(reports)
    assert not list(tmp_path.glob("ldprecover-export-*"))


def test_every_order_of_an_hour_is_as_likely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 24 orders in 960 draws; chi squared with 23 degrees of freedom is above 60 once in 25,000
    runs.
    """
    monkeypatch.setattr(buckets, "part_count", lambda oracle, n: 2)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    oracle = RoundParameters("grr", 1.0, tuple("abcd")).oracle
    reports = np.arange(4, dtype="<u4")
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(960):
        buckets.fill(tmp_path, oracle, {5: 4}, [(5, reports.tobytes())])
        order = []
        for path in sorted(tmp_path.iterdir()):
            order += buckets.shuffled(path, oracle).tolist()
            path.unlink()
        found[tuple(order)] += 1
    assert sum((found[order] - 40) ** 2 / 40 for order in found) + 40 * (24 - len(found)) < 60


def test_a_plan_of_another_place_is_not_gone_on_with(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(1_000)
    with DatasetWriter(tmp_path / "a") as writer:
        writer.gather(export, {5: 1_000}, by_hour(reports, {5: 1_000}))
    (tmp_path / "a").rename(tmp_path / "b")
    with (
        DatasetWriter(tmp_path / "b") as writer,
        pytest.raises(ReportDatasetError, match="belongs to a dataset at"),
    ):
        writer.unfinished()
    plan = tmp_path / "b" / ".export" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"buckets": 3}))
    with (
        DatasetWriter(tmp_path / "b") as writer,
        pytest.raises(ReportDatasetError, match="is damaged"),
    ):
        writer.unfinished()


def test_what_is_held_while_reports_are_read_does_not_grow_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_BUFFER_BYTES", 1 << 18)
    oracle = RoundParameters("olh", 1.0, tuple("abcd")).oracle
    piece = bytes(10_000 * oracle.wire.size)
    peaks = []
    for number in (10, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        tracemalloc.start()
        buckets.fill(folder, oracle, {5: number * 10_000}, ((5, piece) for _ in range(number)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 4 << 20

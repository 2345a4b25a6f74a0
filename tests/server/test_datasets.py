"""A dataset has a round's reports of one moment, and the retention of the round."""

import gc
import json
import logging
import resource
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import NewDatabase

from ldprecover import FrequencyOracle, RoundParameters, Tally
from ldprecover.types import Reports
from ldprecover_cluster import ReportDataset, ReportDatasetError
from ldprecover_server.datasets import DatasetPurge, export_reports
from ldprecover_server.errors import RoundNotFoundError
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.ingest.batches import Batch, Submission
from ldprecover_server.rejections import Rejections
from ldprecover_server.storage import Storage

pytestmark = pytest.mark.sqlite


pytest.importorskip(
    "pyarrow", reason="a report dataset needs the extra: pip install 'ldprecover[cluster]'"
)

HOUR = 470_000


@dataclass
class Collection:
    """A storage whose clock is set by hand."""

    url: str
    hour: int = HOUR
    number: int = 0
    stored: list[Reports] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.storage = Storage(
            self.url, clock=lambda: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=self.hour)
        )
        self.storage.prepare()
        self.rng = np.random.default_rng(7)

    def open(self, oracle: FrequencyOracle, retention: int | None = None) -> str:
        items = tuple(map(str, range(oracle.domain_size)))
        parameters = RoundParameters(oracle.protocol, oracle.epsilon, items)
        self.number += 1
        self.oracle = parameters.oracle
        id, name = f"R{self.number}", f"r{self.number}"
        self.seq = self.storage.rounds.open(id, name, parameters, retention=retention).seq
        return id

    def submit(self, n: int, each: int = 400) -> None:
        """Add n reports of users in this hour, in commits of some each."""
        for start in range(0, n, each):
            reports = self.oracle.perturb(
                self.rng.integers(0, self.oracle.domain_size, min(each, n - start)), self.rng
            )
            self.commit(reports)

    def commit(self, reports: Reports) -> None:
        self.number += 1
        batch = Batch(
            self.seq,
            [Submission(self.seq, self.oracle, f"{self.number}", reports.tobytes())],
        )
        batch.count()
        self.storage.commit([batch])
        self.stored.append(reports)

    def housekeeping(self) -> Housekeeping:
        keeper = Housekeeping(self.storage, Rejections(self.storage))
        keeper.once()
        return keeper

    def noted(self) -> list[str]:
        """Return where the database knows of datasets."""
        with self.storage.database.read() as connection:
            return list(connection.exec_driver_sql("SELECT url FROM datasets").scalars())

    def rows(self) -> Counter[bytes]:
        return Counter(row.tobytes() for reports in self.stored for row in reports)


@pytest.fixture
def collection(new_database: NewDatabase, tmp_path: Path) -> Iterator[Collection]:
    with new_database(tmp_path) as url:
        collection = Collection(url)
        with closing(collection.storage):
            yield collection


def rows(dataset: ReportDataset) -> Counter[bytes]:
    return Counter(
        row.tobytes() for part in dataset.parts for array in part.arrays() for row in array
    )


def recount(dataset: ReportDataset) -> Tally:
    oracle = dataset.export.parameters.oracle
    arrays = [array for part in dataset.parts for array in part.arrays()]
    return sum((Tally.of(oracle, array) for array in arrays), Tally.empty(oracle.summary_size))


def hours(dataset: ReportDataset) -> set[int]:
    return {part.hour - HOUR for part in dataset.parts}


@pytest.fixture
def grr() -> FrequencyOracle:
    return RoundParameters("grr", 1.0, tuple("abcdef")).oracle


@pytest.mark.both
def test_a_dataset_has_the_rounds_reports_by_hour(
    collection: Collection, oracle: FrequencyOracle, tmp_path: Path
) -> None:
    id = collection.open(oracle)
    for n in (1_200, 300, 1_500):
        collection.submit(n)
        collection.hour += 1
    dataset = export_reports(collection.storage, id, str(tmp_path / "round"))
    assert (
        recount(dataset)
        == dataset.export.tally
        == collection.storage.rounds.tally(collection.seq, oracle.summary_size)
    )
    assert rows(dataset) == collection.rows()
    assert (dataset.missing, hours(dataset)) == (0, {0, 2})
    assert dataset.export.round == id


@pytest.mark.both
def test_nothing_that_happens_meanwhile_changes_it(
    collection: Collection, grr: FrequencyOracle
) -> None:
    id = collection.open(grr, retention=1)
    collection.submit(2_000, each=100)
    before = collection.rows()
    with collection.storage.snapshot(id) as snapshot:
        pieces = snapshot.pieces()
        pieces_read = [next(pieces)]
        with closing(Storage(collection.url)) as other:
            collection.submit(500)
            other.rounds.close(id)
            assert other.unlinking.run().done
            assert other.deletion.purge().rows
        pieces_read += pieces
        assert {hour for hour, _ in pieces_read} == set(snapshot.hours) == {HOUR}
        packed = np.frombuffer(b"".join(piece for _, piece in pieces_read), dtype=grr.wire.dtype)
        assert Counter(row.tobytes() for row in packed) == before
        assert Tally.of(grr, packed) == snapshot.tally


def test_a_round_that_is_mixed_gives_the_same_dataset(
    collection: Collection, grr: FrequencyOracle, tmp_path: Path
) -> None:
    id = collection.open(grr)
    collection.submit(3_000, each=30)
    collection.storage.rounds.close(id)
    assert collection.storage.unlinking.run().done
    assert (
        rows(export_reports(collection.storage, id, str(tmp_path / "round"))) == collection.rows()
    )


def test_export_of_missing_reports_needs_partial(
    collection: Collection, grr: FrequencyOracle, tmp_path: Path
) -> None:
    id, folder = collection.open(grr, retention=5), tmp_path / "round"
    collection.submit(1_000)
    collection.hour += 3
    collection.submit(1_500)
    collection.hour += 4
    assert collection.storage.deletion.purge().rows
    with pytest.raises(
        ReportDatasetError, match=r"no longer keeps 1,000 of its 2,500 reports: --partial"
    ):
        export_reports(collection.storage, id, str(folder))
    assert not folder.exists()
    dataset = export_reports(collection.storage, id, str(folder), partial=True)
    assert (dataset.n, dataset.missing, dataset.export.tally.n) == (1_500, 1_000, 2_500)
    none = collection.open(grr, retention=0)
    collection.submit(10)
    with pytest.raises(ReportDatasetError, match="keeps none of its 10 reports"):
        export_reports(collection.storage, none, str(tmp_path / "none"), partial=True)


@pytest.mark.both
def test_unfinished_export_continues_with_its_own_snapshot(
    collection: Collection, grr: FrequencyOracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldprecover_cluster.partitioning.PAIRS", 6 * 1_000)
    id, folder = collection.open(grr), tmp_path / "round"
    collection.submit(3_000)
    before = collection.rows()

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_reports(collection.storage, id, str(folder), step=stop)
    finished = {path: path.stat().st_mtime_ns for path in folder.glob("hour=*/*")}
    assert finished
    collection.submit(100)
    collection.storage.rounds.close(id)
    assert collection.storage.unlinking.run().done
    with pytest.raises(ReportDatasetError, match="an export of the round r1 that has not ended"):
        export_reports(collection.storage, collection.open(grr), str(folder))
    dataset = export_reports(collection.storage, id, str(folder))
    assert rows(dataset) == before
    assert recount(dataset) == dataset.export.tally
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


def test_damaged_reports_are_not_exported(
    collection: Collection, grr: FrequencyOracle, tmp_path: Path
) -> None:
    id = collection.open(grr)
    collection.submit(1_000)
    with collection.storage.database.write() as connection:
        connection.exec_driver_sql("UPDATE segments SET data = (SELECT data FROM segments LIMIT 1)")
    with pytest.raises(ReportDatasetError, match=r"differ|fewer reports"):
        export_reports(collection.storage, id, str(tmp_path / "round"))
    assert not (tmp_path / "round" / "_round.json").exists()
    with pytest.raises(RoundNotFoundError):
        export_reports(collection.storage, "nowhere", str(tmp_path / "nowhere"))


@pytest.fixture
def dataset_folder(collection: Collection, grr: FrequencyOracle, tmp_path: Path) -> Path:
    """A dataset of a round that keeps reports for two hours; it has hours 0 and 3, and the few of
    hour 1 with 0.
    """
    id = collection.open(grr, retention=2)
    for n in (1_500, 100, 0, 2_000):
        collection.submit(n)
        collection.hour += 1
    collection.hour -= 2
    export_reports(collection.storage, id, str(tmp_path / "round"))
    return tmp_path / "round"


@pytest.mark.both
def test_hours_past_their_retention_leave_a_dataset(
    collection: Collection, dataset_folder: Path
) -> None:
    tally = ReportDataset.open(dataset_folder).export.tally
    assert hours(ReportDataset.open(dataset_folder)) == {0, 3}
    for hour, remaining in ((3, {3}), (5, {3}), (6, set())):
        collection.hour = HOUR + hour
        assert collection.housekeeping().last_purge is not None
        dataset = ReportDataset.open(dataset_folder)
        assert hours(dataset) == remaining
        assert {path.name for path in dataset_folder.iterdir()} == {
            "_round.json",
            *(f"hour={HOUR + each}" for each in remaining),
        }
        assert dataset.export.tally == tally
        assert dataset.missing == tally.n - recount(dataset).n
    assert collection.storage.datasets.expired() == []


def test_dataset_of_a_deleted_round_keeps_its_retention(
    collection: Collection, dataset_folder: Path
) -> None:
    collection.storage.deletion.delete("current")
    collection.housekeeping()
    assert hours(ReportDataset.open(dataset_folder)) == {0, 3}
    collection.hour = HOUR + 9
    collection.housekeeping()
    assert ReportDataset.open(dataset_folder).parts == ()


def test_missing_dataset_is_logged_and_forgotten(
    collection: Collection, dataset_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset_folder.rename(dataset_folder.with_name("away"))
    collection.hour = HOUR + 3
    assert collection.housekeeping().last_purge is not None
    assert caplog.text.count("is missing") == 1
    dataset_folder.with_name("away").rename(dataset_folder)  # back in time
    collection.hour = HOUR + 4
    collection.housekeeping()
    assert hours(ReportDataset.open(dataset_folder)) == {3}
    assert caplog.text.count("is missing") == 1
    dataset_folder.rename(dataset_folder.with_name("away"))
    collection.hour = HOUR + 6
    collection.housekeeping()
    assert caplog.text.count("is missing") == 2
    collection.hour = HOUR + 7
    collection.housekeeping()
    assert caplog.text.count("is missing") == 2


def test_failed_purge_is_logged_hourly_and_retried(
    collection: Collection, dataset_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = dataset_folder / "_round.json"
    whole = file.read_text()
    file.write_text("{")
    collection.hour = HOUR + 3
    purge = DatasetPurge(collection.storage)
    assert [purge(), purge()] == [False, False]
    assert [
        record.levelno for record in caplog.records if "stay in a dataset" in record.message
    ] == [logging.ERROR]
    assert {path.name for path in dataset_folder.iterdir()} == {
        "_round.json",
        f"hour={HOUR + 3}",
    }  # they are deleted nevertheless
    assert collection.housekeeping().last_purge is None
    file.write_text(whole)
    assert purge()
    assert hours(ReportDataset.open(dataset_folder)) == {3}


def test_dataset_of_another_round_is_not_touched(
    collection: Collection, dataset_folder: Path, grr: FrequencyOracle, tmp_path: Path
) -> None:
    other = collection.open(grr)
    collection.submit(1_000)
    export_reports(collection.storage, other, str(tmp_path / "other"))
    shutil.rmtree(dataset_folder)
    (tmp_path / "other").rename(dataset_folder)
    collection.hour = HOUR + 9
    assert DatasetPurge(collection.storage)() is False
    assert ReportDataset.open(dataset_folder).n == 1_000


def test_unfinished_export_expires_with_its_first_hour(
    collection: Collection, grr: FrequencyOracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldprecover_cluster.partitioning.PAIRS", 6 * 1_000)
    folder = tmp_path / "round"

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    id = collection.open(grr, retention=2)
    collection.submit(3_000)
    with pytest.raises(KeyboardInterrupt):
        export_reports(collection.storage, id, str(folder), step=stop)
    assert list(folder.rglob("bucket-*"))
    collection.hour += 3
    assert DatasetPurge(collection.storage)()
    assert list(folder.rglob("*")) == []


def test_export_longer_than_its_retention_leaves_nothing(
    collection: Collection, grr: FrequencyOracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldprecover_cluster.partitioning.PAIRS", 6 * 1_000)

    def dawdle(done: int, total: int) -> None:
        collection.hour += 1

    id = collection.open(grr, retention=1)
    collection.submit(3_000)
    with pytest.raises(ReportDatasetError, match="past their retention"):
        export_reports(collection.storage, id, str(tmp_path / "round"), step=dawdle)
    assert list(tmp_path.glob("round*")) == []
    assert collection.noted() == []


@contextmanager
def nearly_full() -> Iterator[None]:
    """The limit of a file's size stands for the end of the disk; the database has grown beyond it
    before.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.both
def test_full_disk_during_reading_leaves_nothing(
    collection: Collection, grr: FrequencyOracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each piece is written as it comes, so the reading ends in the middle of a large segment.
    monkeypatch.setattr("ldprecover_cluster.buckets._BUFFER_BYTES", 1)
    monkeypatch.setattr("ldprecover_server.storage.segments.PIECE_BYTES", 64)
    unraisable: list[object] = []
    datasets = collection.storage.datasets
    record, forget_dataset = datasets.record, datasets.forget
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    id = collection.open(grr, retention=2)
    collection.submit(3_000, each=3_000)
    with ExitStack() as disk:

        def record_and_fill(*arguments: Any, **more: Any) -> None:
            record(*arguments, **more)
            assert len(collection.noted()) == 1
            disk.enter_context(nearly_full())

        def forget(url: str) -> None:
            disk.close()  # the database has a separate disk
            forget_dataset(url)

        monkeypatch.setattr(datasets, "record", record_and_fill)
        monkeypatch.setattr(datasets, "forget", forget)
        with pytest.raises(ReportDatasetError, match=r"the disk of .* is full") as raised:
            export_reports(collection.storage, id, str(tmp_path / "round"))
    assert list(tmp_path.glob("round*")) == []
    assert collection.noted() == []
    # A read in progress at the end would be reported once the error is garbage.
    collection.storage.close()
    del raised
    gc.collect()
    assert unraisable == []


def test_full_disk_during_parts_keeps_export_and_record(
    collection: Collection, grr: FrequencyOracle, tmp_path: Path
) -> None:
    id = collection.open(grr, retention=2)
    collection.submit(3_000)
    with ExitStack() as disk, pytest.raises(ReportDatasetError, match=r"the disk of .* is full"):
        export_reports(
            collection.storage,
            id,
            str(tmp_path / "round"),
            step=lambda done, total: disk.enter_context(nearly_full()),
        )
    assert len(collection.noted()) == 1
    assert export_reports(collection.storage, id, str(tmp_path / "round")).n == 3_000


def test_export_numbers_are_portable_json(collection: Collection, dataset_folder: Path) -> None:
    written = json.loads((dataset_folder / "_round.json").read_text())
    assert set(written["reports"]) == {"parts"}
    assert sum(part["n"] for part in written["reports"]["parts"]) == written["n"]

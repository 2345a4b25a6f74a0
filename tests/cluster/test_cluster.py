"""Datasets of reports, and passes over them on a Dask cluster: equal to one process to the bit."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from distributed import Client, LocalCluster
from tests.core.recovery.poisoned_round import ORACLES, TARGETS, D, poisoned

from ldprecover import (
    FrequencyOracle,
    Recovery,
    RecoveryRequest,
    RoundExport,
    RoundParameters,
    Tally,
    recover,
)
from ldprecover.certificate import certify
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import Reports
from ldprecover_cli.app import run
from ldprecover_cluster import (
    DatasetSource,
    EngineError,
    ReportDataset,
    ReportDatasetError,
    connect,
    write_dataset,
)
from ldprecover_cluster.dataset import arrays, shown

ITEMS = tuple(map(str, range(D)))


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The URL of a scheduler with two worker processes, which a nanny starts again."""
    with (
        pytest.MonkeyPatch.context() as patch,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        patch.setenv("LDPRECOVER_KERNELS", "numpy")
        yield cluster.scheduler_address


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has 8 KiB, and a file at most 1,000 reports."""
    monkeypatch.setattr("ldprecover_cluster.dataset._BATCH_BYTES", 1 << 13)
    monkeypatch.setattr("ldprecover_cluster.dataset._FILE_PAIRS", 1_000 * D)


def export_of(oracle: FrequencyOracle, reports: Reports) -> RoundExport:
    parameters = RoundParameters.named(oracle.protocol, oracle.epsilon, ITEMS, oracle.own)
    return RoundExport(
        round="R1",
        name="cities",
        parameters=parameters,
        tally=Tally.of(oracle, reports),
        seed="5" * 32,
    )


def written(folder: Path, oracle: FrequencyOracle, reports: Reports) -> ReportDataset:
    """Return a dataset of these reports, which come in pieces of 300."""
    pieces = (reports[start : start + 300].tobytes() for start in range(0, len(reports), 300))
    return write_dataset(str(folder), export_of(oracle, reports), pieces)


@pytest.fixture
def dataset(tmp_path: Path) -> ReportDataset:
    """A dataset of reports of OUE."""
    return written(tmp_path / "round", ORACLES["oue"], poisoned(ORACLES["oue"]).reports)


def rows(dataset: ReportDataset) -> list[bytes]:
    """Return the packed reports of a dataset one by one."""
    oracle = dataset.export.parameters.oracle
    blocks = (block for part in dataset.fragments for block in arrays(oracle, part))
    return split(oracle, np.concatenate(list(blocks)))


def split(oracle: FrequencyOracle, reports: Reports) -> list[bytes]:
    packed, size = reports.tobytes(), oracle.wire.size
    return [packed[i : i + size] for i in range(0, len(packed), size)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dataset_has_each_report_once_in_another_order(tmp_path: Path, protocol: str) -> None:
    oracle = RoundParameters(protocol, 1.0, ITEMS).oracle
    rng = np.random.default_rng(1)
    reports = oracle.perturb(rng.integers(0, D, 5_000), rng)
    dataset = written(tmp_path / "round", oracle, reports)
    assert len(dataset.fragments) >= 5
    read, packed = rows(dataset), split(oracle, reports)
    assert sorted(read) == sorted(packed)
    assert read != packed
    assert DatasetSource([dataset]).tally() == dataset.export.tally
    assert json.loads((tmp_path / "round/_round.json").read_text()) == dataset.export.to_dict()
    assert pyarrow.dataset.dataset(tmp_path / "round").count_rows() == 5_000


def test_round_without_reports_is_a_dataset(tmp_path: Path) -> None:
    oracle = ORACLES["olh"]
    dataset = written(tmp_path / "round", oracle, oracle.perturb([], np.random.default_rng(1)))
    assert dataset.fragments == ()
    assert DatasetSource([dataset]).tally() == dataset.export.tally


def test_memory_of_the_writer_does_not_grow_with_the_reports(tmp_path: Path) -> None:
    def peak(pieces: int) -> int:
        code = f"""
import numpy as np
from pathlib import Path
from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover_cluster import write_dataset
parameters = RoundParameters("oue", 1.0, tuple(map(str, range(1_024))))
tally = Tally(np.zeros(1_024, np.int64), {pieces} * 8_192)
export = RoundExport(round="R1", name="x", parameters=parameters, tally=tally)
write_dataset({str(tmp_path / str(pieces))!r}, export, (bytes(1 << 20) for _ in range({pieces})))
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in lines if "VmHWM" in line).split()[1])
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        return int(done.stdout) >> 10

    assert peak(400) - peak(100) < 64  # MiB


def recovered(
    dataset: ReportDataset, method: str, scheduler: str | None
) -> tuple[Recovery, list[tuple[int, int]]]:
    """Return the recovery over a dataset, here or on a cluster, and the progress."""
    progress: list[tuple[int, int]] = []
    options = {"subsets": 5} if method == "k-means" else {}
    request = RecoveryRequest(method, targets=TARGETS[0], options=options)
    export = dataset.export

    def run_on(client: object) -> Recovery:
        source = DatasetSource(
            [dataset], client, progress=lambda *numbers: progress.append(numbers)
        )
        return recover(export.parameters.oracle, source, request, tally=export.tally)

    if scheduler is None:
        return run_on(None), progress
    with connect(scheduler) as client:
        return run_on(client), progress


@pytest.mark.parametrize(
    ("protocol", "method"), [("olh", "unmix"), ("oue", "fiad"), ("oue", "k-means")]
)
def test_recovery_on_a_cluster_is_that_of_one_process(
    tmp_path: Path, scheduler: str, protocol: str, method: str
) -> None:
    oracle = ORACLES[protocol]
    dataset = written(tmp_path / "round", oracle, poisoned(oracle, *TARGETS).reports[:5_000])
    local, _ = recovered(dataset, method, None)
    remote, progress = recovered(dataset, method, scheduler)
    assert local.notes == remote.notes
    for name in ("malicious", "genuine", "recovered"):
        np.testing.assert_array_equal(getattr(local, name), getattr(remote, name))
    assert 0 < progress[0][1] < progress[1][1] <= dataset.export.tally.n


def test_certificate_on_a_cluster_is_that_of_one_process(tmp_path: Path, scheduler: str) -> None:
    oracle = ORACLES["olh"]
    dataset = written(tmp_path / "round", oracle, poisoned(oracle).reports)

    def total(source: DatasetSource) -> tuple[float, float]:
        certificate = certify(oracle, source, 0.1, questions=[TARGETS[0]], seed=5)
        return certificate.total(TARGETS[0])

    with connect(scheduler) as client:
        assert total(DatasetSource([dataset], client)) == total(DatasetSource([dataset]))


def test_results_of_killed_workers_are_computed_again(
    dataset: ReportDataset, scheduler: str
) -> None:
    """All workers die after the first sum, so the others are lost or were never computed."""
    with connect(scheduler) as client:
        killed: list[int] = []

        def kill(passes: int, read: int) -> None:
            if not killed:
                killed.extend(client.run(os.getpid).values())
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        source = DatasetSource([dataset], client, progress=kill)
        assert source.tally() == dataset.export.tally
        assert len(killed) == 2
        assert set(client.run(os.getpid).values()).isdisjoint(killed)


def test_command_adds_datasets_and_reads_them_on_a_cluster(
    tmp_path: Path, scheduler: str, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle = ORACLES["olh"]
    reports = poisoned(oracle, *TARGETS).reports
    folders = [tmp_path / "north", tmp_path / "south"]
    written(folders[0], oracle, reports[:9_000])
    pieces = [reports[9_000:].tobytes()]
    south = replace(export_of(oracle, reports[9_000:]), round="R2")
    write_dataset(folders[1], south, pieces)
    line = ["file", "recompute", *map(str, folders), "--method", "fiad"]
    assert run(line) == 0
    here = json.loads(capsys.readouterr().out)
    assert here["round"] == "R1+R2"
    assert here["counts"] == Tally.of(oracle, reports).counts(oracle).tolist()
    assert "abnormal" in here["notes"][0]
    assert run([*line, "--scheduler", scheduler]) == 0
    assert json.loads(capsys.readouterr().out) == here


def test_writes_only_into_an_empty_folder(tmp_path: Path) -> None:
    oracle = ORACLES["oue"]
    (tmp_path / "file").touch()
    with pytest.raises(ReportDatasetError, match="is not empty: name a new folder"):
        written(tmp_path, oracle, poisoned(oracle).reports)


def test_dataset_lacks_no_report(tmp_path: Path) -> None:
    oracle, reports = ORACLES["oue"], poisoned(ORACLES["oue"]).reports
    with pytest.raises(ReportDatasetError, match=r"stores 9 of its 21,500 reports"):
        write_dataset(tmp_path, export_of(oracle, reports), [reports[:9].tobytes()])
    with pytest.raises(ReportDatasetError, match=r"has no _round\.json"):
        ReportDataset.open(tmp_path)


def changed(folder: Path, column: pyarrow.Array, name: str = "report") -> None:
    """Replace a file of a dataset by one with this column."""
    file = min(folder.glob("part-*.parquet"))
    pyarrow.parquet.write_table(pyarrow.table({name: column}), file)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pyarrow.array([b"8 bytes.", None], pyarrow.binary(8)), "null"),
        (pyarrow.array([b"9 bytes.."], pyarrow.binary(9)), "cannot read"),
        (pyarrow.array(["text"]), "cannot read"),
    ],
)
def test_other_columns_are_rejected(
    dataset: ReportDataset, tmp_path: Path, column: pyarrow.Array, message: str
) -> None:
    changed(tmp_path / "round", column)
    with pytest.raises(ReportDatasetError, match=message):
        DatasetSource([ReportDataset.open(dataset.url)]).tally()


def test_names_a_file_that_was_cut(dataset: ReportDataset, tmp_path: Path) -> None:
    file = min(tmp_path.rglob("part-*.parquet"))
    os.truncate(file, file.stat().st_size - 50)
    with pytest.raises(ReportDatasetError, match=file.name):
        DatasetSource([ReportDataset.open(dataset.url)])


def test_command_rejects_reports_that_differ_from_the_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle = ORACLES["grr"]
    written(tmp_path / "round", oracle, poisoned(oracle).reports)
    changed(tmp_path / "round", pyarrow.array([1, 2, 3], pyarrow.uint32()))
    assert run(["file", "recompute", str(tmp_path / "round")]) == 1
    assert "the reports differ from the counts of their export" in capsys.readouterr().err


def test_names_a_scheduler_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldprecover_cluster.source._TIMEOUT", 0.5)
    with (
        pytest.raises(EngineError, match=r"tcp://127\.0\.0\.1:1 cannot be reached"),
        connect("tcp://127.0.0.1:1"),
    ):
        pass


def test_rejects_workers_of_another_version(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_versions: Any = Client.get_versions

    def other_versions(self: Client, **options: object) -> Any:
        versions = get_versions(self, **options)
        versions["client"]["packages"]["ldprecover"] = "0.0.1"
        return versions

    monkeypatch.setattr(Client, "get_versions", other_versions)
    with (
        pytest.raises(EngineError, match=r"has LDPRecover .*, and this process 0\.0\.1"),
        connect(scheduler),
    ):
        pass


def test_names_a_scheduler_that_is_lost(dataset: ReportDataset) -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as lost,
        pytest.raises(EngineError, match="was lost"),
        connect(lost.scheduler_address) as client,
    ):
        DatasetSource([dataset], client, progress=lambda *_: lost.close()).tally()


def test_message_hides_url_that_may_have_secrets() -> None:
    for url in ("s3://key:Mark@host/reports", "s3://host/reports?token=Mark", "s3://a@Mark?x@y"):
        assert shown(f"cannot read {url}: x", url) == "cannot read s3://***: x"
    assert shown("cannot read s3://bucket/a: x", "s3://bucket/a") == "cannot read s3://bucket/a: x"

"""Files of reports: what they hold, and which ones are refused."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import Reports
from ldprecover_client import (
    ReportFile,
    ReportFileError,
    report_source,
    write_report_file,
)

D, N = 60, 5_000
ROUND = b"ldprecover.round"
COLUMNS = {
    **{protocol: {"report": "uint32"} for protocol in ("grr", "hr", "llh")},
    **{protocol: {"report": "fixed_size_binary[8]"} for protocol in ("oue", "sue", "ss")},
    "olh": {"seed": "uint32", "bucket": "uint16"},
}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has 8 KiB, and a row group 1 KiB."""
    monkeypatch.setattr("ldprecover_client.report_files._BATCH_BYTES", 1 << 13)
    monkeypatch.setattr("ldprecover_client.report_files._GROUP_BYTES", 1 << 10)


def simulated(protocol: str) -> tuple[RoundExport, Reports]:
    """Return the export and the reports of a round."""
    parameters = RoundParameters(protocol, 1.0, tuple(map(str, range(D))))
    rng = np.random.default_rng(1)
    reports = parameters.oracle.perturb(rng.integers(0, D, N), rng)
    tally = Tally.of(parameters.oracle, reports)
    return RoundExport(round="R1", name="x", parameters=parameters, tally=tally), reports


def pieces(reports: Reports) -> Iterator[bytes]:
    return (reports[start : start + 300].tobytes() for start in range(0, len(reports), 300))


@pytest.fixture
def lunch(tmp_path: Path) -> Path:
    """A file of reports of OUE."""
    path = tmp_path / "lunch.parquet"
    export, reports = simulated("oue")
    write_report_file(path, export, pieces(reports))
    return path


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_file_has_each_report_once_in_another_order(tmp_path: Path, protocol: str) -> None:
    path = tmp_path / "lunch.parquet"
    export, reports = simulated(protocol)
    progress: list[tuple[int, int]] = []
    write_report_file(path, export, pieces(reports), progress=lambda *n: progress.append(n))
    file = ReportFile.open(path)
    assert file.export.to_dict() == export.to_dict()
    read = np.concatenate([*file.arrays()])
    assert read.dtype == reports.dtype
    rows = [
        array.view(f"V{export.parameters.oracle.wire.size}").ravel() for array in (read, reports)
    ]
    assert sorted(map(bytes, rows[0])) == sorted(map(bytes, rows[1]))
    assert read.tobytes() != reports.tobytes()
    assert report_source([file]).n == N
    table = parquet.read_table(path)
    assert {field.name: str(field.type) for field in table.schema} == COLUMNS[protocol]
    assert progress[-1] == (N, N)
    assert len(progress) > 1


def test_row_groups_and_arrays_are_bounded(lunch: Path) -> None:
    metadata = parquet.read_metadata(lunch)
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert max(sizes) == 1024 // 8
    assert max(map(len, ReportFile.open(lunch).arrays())) == 1024 // 8


@pytest.mark.slow
def test_memory_of_the_writer_does_not_grow_with_reports(tmp_path: Path) -> None:
    def peak(pieces: int) -> int:
        code = f"""
import numpy as np
from pathlib import Path
from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover_client import write_report_file
parameters = RoundParameters("oue", 1.0, tuple(map(str, range(1_024))))
tally = Tally(np.zeros(1_024, np.int64), {pieces} * 8_192)
export = RoundExport(round="R1", name="x", parameters=parameters, tally=tally)
path = {str(tmp_path / str(pieces))!r}
write_report_file(path, export, (bytes(1 << 20) for _ in range({pieces})))
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in lines if "VmHWM" in line).split()[1])
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        return int(done.stdout) >> 10

    assert peak(200) - peak(50) < 64  # MiB


def test_round_without_reports_is_a_file(tmp_path: Path) -> None:
    export, _ = simulated("olh")
    empty = replace(export, tally=Tally.empty(D))
    write_report_file(tmp_path / "empty", empty, [])
    assert report_source([ReportFile.open(tmp_path / "empty")]).tally() == empty.tally


@pytest.mark.parametrize("protocol", ["grr", "olh"])
def test_source_of_several_files_has_the_reports_of_all(tmp_path: Path, protocol: str) -> None:
    export, reports = simulated(protocol)
    oracle = export.parameters.oracle
    for name, part in (("north", reports[:3_000]), ("south", reports[3_000:])):
        tally = Tally.of(oracle, part)
        write_report_file(tmp_path / name, replace(export, round=name, tally=tally), pieces(part))
    files = [ReportFile.open(tmp_path / name) for name in ("north", "south")]
    assert report_source(files).tally() == export.tally


def test_only_the_owner_reads_a_file(lunch: Path) -> None:
    assert stat.S_IMODE(lunch.stat().st_mode) == 0o600


def test_existing_file_is_not_replaced_even_if_made_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "lunch.parquet"
    export, reports = simulated("oue")
    for progress in (lambda *_: path.touch(), None):
        with pytest.raises(FileExistsError):
            write_report_file(path, export, pieces(reports), progress=progress)
        assert path.read_bytes() == b""
        assert [*tmp_path.iterdir()] == [path]


def test_file_system_without_links_gets_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*paths: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    export, reports = simulated("oue")
    write_report_file(tmp_path / "lunch", export, pieces(reports))
    assert [*tmp_path.iterdir()] == [tmp_path / "lunch"]
    assert stat.S_IMODE((tmp_path / "lunch").stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupted_write_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    export, reports = simulated("oue")

    def interrupted() -> Iterator[bytes]:
        yield reports[:4_000].tobytes()
        assert len([*tmp_path.iterdir()]) == 1
        raise error

    with pytest.raises(error):
        write_report_file(tmp_path / "lunch.parquet", export, interrupted())
    assert [*tmp_path.iterdir()] == []


def test_file_lacks_no_report(tmp_path: Path) -> None:
    export, reports = simulated("oue")
    with pytest.raises(ReportFileError, match="the round x stores 9 of its 5,000 reports"):
        write_report_file(tmp_path / "lunch.parquet", export, pieces(reports[:9]))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("share", [0.1, 0.9, 0.999])
def test_truncated_file_is_refused(lunch: Path, share: float) -> None:
    os.truncate(lunch, int(lunch.stat().st_size * share))
    with pytest.raises(ReportFileError, match=r"cannot read .*lunch\.parquet: "):
        ReportFile.open(lunch)


def test_damaged_file_is_refused(lunch: Path) -> None:
    data = bytearray(lunch.read_bytes())
    data[4:2_000] = bytes(1_996)
    lunch.write_bytes(data)
    with pytest.raises(ReportFileError, match=r"cannot read .*lunch\.parquet: "):
        report_source([ReportFile.open(lunch)])


def rewrite(path: Path, table: pyarrow.Table, text: bytes | None = None) -> None:
    """Write a table with an export, that of the file by default."""
    text = parquet.read_metadata(path).metadata[ROUND] if text is None else text
    parquet.write_table(table.replace_schema_metadata({ROUND: text}), path)


def test_parquet_file_without_a_round_is_refused(lunch: Path) -> None:
    parquet.write_table(parquet.read_table(lunch).replace_schema_metadata(None), lunch)
    with pytest.raises(ReportFileError, match=r"lunch\.parquet has no round"):
        ReportFile.open(lunch)


def test_other_columns_are_refused(lunch: Path) -> None:
    for column in (["text"], [b"9 bytes.."], [None]):
        rewrite(lunch, pyarrow.table({"report": column}))
        with pytest.raises(ReportFileError, match="has other columns than reports of oue"):
            ReportFile.open(lunch)


def test_changed_export_is_refused(lunch: Path) -> None:
    text = parquet.read_metadata(lunch).metadata[ROUND].replace(b'"n": 5000', b'"n": 5001')
    rewrite(lunch, parquet.read_table(lunch), text)
    with pytest.raises(ReportFileError, match=r"lunch\.parquet: the export was changed: its"):
        ReportFile.open(lunch)


@pytest.mark.parametrize("rows", [slice(1, None), [*range(N - 1), 0]])
def test_reports_with_other_counts_are_refused(lunch: Path, rows: slice | list[int]) -> None:
    table = parquet.read_table(lunch)
    rewrite(lunch, table[rows] if isinstance(rows, slice) else table.take(rows))
    with pytest.raises(ReportFileError, match=r"lunch\.parquet differ from the counts of their"):
        report_source([ReportFile.open(lunch)])


def test_bytes_that_are_no_reports_are_refused(tmp_path: Path) -> None:
    export, reports = simulated("grr")
    reports[7] = D
    write_report_file(tmp_path / "lunch", export, pieces(reports))
    with pytest.raises(ReportFileError, match="differ from the counts of their export"):
        report_source([ReportFile.open(tmp_path / "lunch")])

"""Every byte of a part is checked when it is read, and any reader of Parquet reads it too."""

import hashlib
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cluster.conftest import MakeRound

from ldprecover.recovery import ReportSource
from ldprecover.rounds.report_files import ReportPart
from ldprecover.types import Reports
from ldprecover_cluster import (
    ParquetPart,
    ReportDataset,
    ReportDatasetError,
    limits,
    parts,
    write_dataset,
)
from ldprecover_cluster.columns import arrow_schema, to_batch

pa = pytest.importorskip(
    "pyarrow", reason="a report dataset needs the extra: pip install 'ldprecover[cluster]'"
)
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("pyarrow.dataset")

N = 3_000


@pytest.fixture
def dataset(make_round: MakeRound, tmp_path: Path) -> ReportDataset:
    return written(make_round, tmp_path)


@pytest.fixture
def any_dataset(make_any: MakeRound, tmp_path: Path) -> ReportDataset:
    return written(make_any, tmp_path)


def written(make: MakeRound, folder: Path) -> ReportDataset:
    """Write a round as a dataset of two hours."""
    export, reports = make(N)
    pieces = [(5, reports[:2_000].tobytes()), (6, reports[2_000:].tobytes())]
    return write_dataset(folder, export, {5: 2_000, 6: 1_000}, pieces)


def path_of(part: ParquetPart) -> Path:
    return Path(part.url.removeprefix("file://")) / f"hour={part.hour}" / part.name


def read(part: ParquetPart) -> Reports:
    return np.concatenate(list(part.arrays()))


def replaced(part: ParquetPart, data: bytes, n: int) -> ParquetPart:
    """Write other bytes into a part's file, and return the part with their digest."""
    path_of(part).write_bytes(data)
    return replace(part, n=n, sha256=hashlib.sha256(data).hexdigest())


def parquet(table: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())


def test_parts_are_small_references_to_the_reports(any_dataset: ReportDataset) -> None:
    oracle = any_dataset.export.parameters.oracle
    assert ReportSource.of_parts(oracle, any_dataset.parts).tally() == any_dataset.export.tally
    for part in any_dataset.parts:
        assert len(pickle.dumps(part)) < 1_000
        assert pickle.loads(pickle.dumps(part)) == part


def test_reads_a_row_group_at_a_time(
    any_dataset: ReportDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = any_dataset.parts[0]
    rows = read(part)
    monkeypatch.setattr(limits, "GROUP_BYTES", 100 * part.dtype.itemsize)
    _, data = parts.encode(5, part.name, rows, part.dtype)
    arrays = list(replaced(part, bytes(data), part.n).arrays())
    assert {len(array) for array in arrays} == {100}
    assert (np.concatenate(arrays) == rows).all()


@pytest.mark.parametrize("place", [0.0, 0.3, 0.999])
def test_rejects_a_flipped_byte(dataset: ReportDataset, place: float) -> None:
    """The error names the part, also after it came from another process."""
    part = dataset.parts[0]
    data = bytearray(path_of(part).read_bytes())
    data[int(place * len(data))] ^= 1
    path_of(part).write_bytes(data)
    message = f"hour=5/{part.name}.*its digest is wrong"
    with pytest.raises(ReportDatasetError, match=message) as info:
        read(part)
    assert str(pickle.loads(pickle.dumps(info.value))) == str(info.value)


def test_rejects_other_files(any_dataset: ReportDataset) -> None:
    part = any_dataset.parts[0]
    schema = arrow_schema(part.dtype)
    nulls = {field.name: pa.array([None, None], field.type) for field in schema}
    columns = "its columns are .*; those of the round's reports are .* not null"
    footer = (1 << 21).to_bytes(4, "little") + b"PAR1"
    for data, n, message in (
        (b"PAR1" * 20, part.n, "is not a Parquet file"),
        (path_of(part).read_bytes(), part.n + 1, f"has {part.n} reports instead of {part.n + 1}"),
        (path_of(part).read_bytes(), 10**12, f"has {part.n} reports instead of 1000000000000"),
        (parquet(pa.table({"other": [1, 2]})), 2, columns),
        (parquet(pa.table({"report": pa.array([1, 2], pa.int8())})), 2, columns),
        (parquet(pa.table(nulls)), 2, columns),
        (bytes(1 << 21) + footer, 10**6, "its footer has 2097152 bytes; the limit is 1048576"),
    ):
        with pytest.raises(ReportDatasetError, match=f"(?s){part.name}.*{message}"):
            read(replaced(part, data, n))
    path_of(part).write_bytes(bytes(50 << 20))  # reading stops at the size of a part
    with pytest.raises(ReportDatasetError, match=f"larger than .* the limit for {part.n} reports"):
        read(part)
    path_of(part).unlink()
    with pytest.raises(ReportDatasetError, match="the file is missing"):
        read(part)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "zstd"}, "it is compressed, by ZSTD"),
        ({"use_dictionary": True}, "its encodings are .*DICTIONARY.*, not PLAIN"),
        ({"column_encoding": "DELTA_BINARY_PACKED"}, "its encodings are .*, not PLAIN"),
        (
            {"row_group_size": 700_000},
            "it has a row group of 700000 reports; the limit is 699050",
        ),
    ],
)
def test_footer_reveals_files_that_decode_to_more(
    dataset: ReportDataset,
    options: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part, n = dataset.parts[0], 700_000
    defaults = {"compression": "none", "use_dictionary": False, "row_group_size": 1_000}
    table = pa.table(to_batch(part.dtype, np.zeros(n, dtype=part.dtype)))
    changed = replaced(part, parquet(table, **(defaults | options)), n)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)  # nothing is decoded
    with pytest.raises(ReportDatasetError, match=message):
        read(changed)


def test_rejects_pipes_and_devices(dataset: ReportDataset) -> None:
    """Reading them could block, or never end."""
    part = dataset.parts[0]
    round_file = path_of(part).parents[1] / "_round.json"
    for path in (path_of(part), round_file):
        path.unlink()
        os.mkfifo(path)
    with pytest.raises(ReportDatasetError, match=f"{part.name} is not a regular file"):
        read(part)
    for _ in range(2):
        with pytest.raises(ReportDatasetError, match=r"round\.json is not a regular file"):
            ReportDataset.open(round_file.parent)
        round_file.unlink()
        round_file.symlink_to("/dev/zero")


def test_names_the_part_of_an_invalid_report(dataset: ReportDataset) -> None:
    part = dataset.parts[1]
    rows = read(part)
    rows["bucket"][12] = 60_000
    _, data = parts.encode(6, part.name, rows, part.dtype)
    invalid = replace(dataset, parts=(dataset.parts[0], replaced(part, bytes(data), part.n)))
    message = f"the part hour=6/{part.name} of .*: report 12: the bucket must be"
    with pytest.raises(ReportDatasetError, match=message):
        invalid.tally()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("zip://x", "it is an archive"),
        ("simplecache::file:///x", "chained URLs are not supported"),
        ("bogus://x", "Protocol not known: bogus"),
        ("s3://bucket/x", "Install s3fs to access S3$"),
    ],
)
def test_rejects_a_url_that_cannot_be_opened(
    url: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ReportDatasetError, match=f"^cannot open {url}: {message}"):
        ReportDataset.open(url)


def test_other_readers_of_parquet_open_the_folder(any_dataset: ReportDataset) -> None:
    """Without an option that skips files."""
    folder, part = any_dataset.url.removeprefix("file://"), any_dataset.parts[0]
    assert len(pytest.importorskip("pandas").read_parquet(folder)) == N
    table = datasets.dataset(folder, partitioning="hive").to_table()
    assert table.num_rows == N
    assert sorted(set(table["hour"].to_pylist())) == [5, 6]
    assert table.schema.names == [*(part.dtype.names or ["report"]), "hour"]
    column = pq.ParquetFile(path_of(part)).metadata.row_group(0).column(0)
    assert (column.compression, column.is_stats_set) == ("UNCOMPRESSED", False)
    assert "PLAIN" in column.encodings
    assert not any("DICTIONARY" in encoding for encoding in column.encodings)


def test_rejects_a_folder_that_is_not_a_dataset(dataset: ReportDataset, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises(ReportDatasetError, match=r"has no _round\.json"):
        ReportDataset.open(folder)
    changed = (tmp_path / "_round.json").read_text().replace('"hour": 5', '"hour": 6', 1)
    for content, message in (("{}", "not an export"), (changed, "checksum")):
        (folder / "_round.json").write_text(content)
        with pytest.raises(ReportDatasetError, match=message):
            ReportDataset.open(folder)


@pytest.mark.parametrize(
    ("dtype", "columns"),
    [
        (
            np.dtype([("seed", "<u4"), ("bucket", "<u2")]),
            {"seed": pa.uint32(), "bucket": pa.uint16()},
        ),
        (np.dtype("<u4"), {"report": pa.uint32()}),
        (np.dtype(("u1", (13,))), {"report": pa.binary(13)}),
        (np.dtype([("a", ">u4"), ("b", "u1", (2, 3))]), {"a": pa.binary(4), "b": pa.binary(6)}),
    ],
)
def test_columns_are_as_documented(dtype: np.dtype, columns: dict[str, Any]) -> None:
    schema = arrow_schema(dtype)
    assert dict(zip(schema.names, schema.types, strict=True)) == columns
    rows = np.frombuffer(np.random.default_rng(1).bytes(7 * dtype.itemsize), dtype=dtype)
    entry, data = parts.encode(5, "part-0.parquet", rows, dtype)
    assert entry == ReportPart(5, "part-0.parquet", 7, hashlib.sha256(data).hexdigest())
    (decoded,) = ParquetPart("", 5, entry.name, 7, entry.sha256, dtype)._arrays(bytes(data))
    assert decoded.tobytes() == rows.tobytes()

"""Parts are read where they are measured: every byte is checked, and any reader of Parquet reads
them too.
"""

import hashlib
import os
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cluster.conftest import MakeRound

from ldprecover import Tally
from ldprecover.recovery import ReportSource
from ldprecover.rounds.report_files import ReportPart
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


def written(make: MakeRound, tmp_path: Path) -> ReportDataset:
    export, reports = make(N)
    return write_dataset(
        tmp_path,
        export,
        {5: 2_000, 6: 1_000},
        [(5, reports[:2_000].tobytes()), (6, reports[2_000:].tobytes())],
    )


def path_of(part: ParquetPart) -> Path:
    return Path(part.url.removeprefix("file://")) / f"hour={part.hour}" / part.name


def test_a_dataset_is_a_source_of_reports(any_dataset: ReportDataset) -> None:
    oracle = any_dataset.export.parameters.oracle
    assert ReportSource.of_parts(oracle, any_dataset.parts).tally() == any_dataset.export.tally
    assert all(len(pickle.dumps(part)) < 1_000 for part in any_dataset.parts)


def test_a_part_is_read_a_row_group_at_a_time(
    any_dataset: ReportDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = any_dataset.export.parameters.oracle.wire.dtype
    rows = np.concatenate(list(any_dataset.parts[0].arrays()))
    monkeypatch.setattr(limits, "GROUP_BYTES", 100 * form.itemsize)
    entry, data = parts.encode(5, "part-x.parquet", rows, form)
    path_of(any_dataset.parts[0]).with_name("part-x.parquet").write_bytes(data)
    arrays = list(ParquetPart(any_dataset.url, 5, entry.name, entry.n, entry.sha256, form).arrays())
    assert {len(array) for array in arrays} == {100}
    assert (np.concatenate(arrays) == rows).all()


@pytest.mark.parametrize("place", [0.0, 0.3, 0.999])
def test_a_flipped_byte_is_refused_with_the_parts_name(
    dataset: ReportDataset, place: float
) -> None:
    part = dataset.parts[0]
    data = bytearray(path_of(part).read_bytes())
    data[int(place * len(data))] ^= 1
    path_of(part).write_bytes(data)
    with pytest.raises(ReportDatasetError, match=f"hour=5/{part.name}.*its digest is wrong"):
        list(part.arrays())


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        yield executor


def test_a_worker_process_says_which_part_is_damaged(
    dataset: ReportDataset, processes: ProcessPoolExecutor
) -> None:
    oracle = dataset.export.parameters.oracle
    assert (
        ReportSource.of_parts(oracle, dataset.parts, executor=processes).tally()
        == dataset.export.tally
    )
    with path_of(dataset.parts[1]).open("r+b") as file:
        file.truncate(100)
    with pytest.raises(ReportDatasetError, match=f"hour=6/{dataset.parts[1].name}"):
        ReportSource.of_parts(oracle, dataset.parts, executor=processes).total(Tally.of)


def test_what_is_not_the_part_that_is_listed_is_refused(any_dataset: ReportDataset) -> None:
    part = any_dataset.parts[0]
    form = any_dataset.export.parameters.oracle.wire.dtype
    written: list[tuple[bytes, int, str]] = [
        (b"PAR1" * 20, part.n, "is not a Parquet file"),
        (
            path_of(part).read_bytes(),
            part.n + 1,
            f"it has {part.n} reports instead of {part.n + 1}",
        ),
        (_table({"other": pa.array([1, 2])}), 2, "not those of the round's reports"),
        (_table({"report": pa.array([1, 2], pa.int8())}), 2, "not those of the round's reports"),
    ]
    holes = {field.name: pa.array([None, None], field.type) for field in arrow_schema(form)}
    written.append((_table(holes), 2, "not those|has a null"))
    for data, n, said in written:
        path_of(part).write_bytes(data)
        with pytest.raises(ReportDatasetError, match=f"(?s){part.name}.*{said}"):
            list(replace(part, n=n, sha256=hashlib.sha256(data).hexdigest()).arrays())
    path_of(part).write_bytes(bytes(50 << 20))  # no more is read than a part may have
    with pytest.raises(ReportDatasetError, match="its digest is wrong"):
        list(part.arrays())
    path_of(part).unlink()
    with pytest.raises(ReportDatasetError, match="the file is missing"):
        list(part.arrays())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"compression": "zstd"}, "it is compressed, by ZSTD"),
        ({"use_dictionary": True}, "its encodings are .*DICTIONARY.*, not PLAIN"),
        (
            {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"},
            "its encodings are .*, not PLAIN",
        ),
        ({"use_dictionary": False}, "it has a row group of 700000 reports; the limit is 699050"),
    ],
)
def test_what_could_become_much_larger_is_refused_by_its_footer(
    dataset: ReportDataset, options: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, n = dataset.export.parameters.oracle.wire.dtype, 700_000
    batch = to_batch(form, np.zeros(n, dtype=form))
    sink = pa.BufferOutputStream()
    few = {} if said.startswith("it has") else {"row_group_size": 1_000}
    settings = {"compression": "none", "use_dictionary": False} | options
    pq.write_table(pa.table(batch), sink, **settings, **few)
    data = sink.getvalue().to_pybytes()
    path_of(dataset.parts[0]).write_bytes(data)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)  # nothing is decoded
    with pytest.raises(ReportDatasetError, match=said):
        list(replace(dataset.parts[0], n=n, sha256=hashlib.sha256(data).hexdigest()).arrays())


def test_what_is_listed_with_endless_reports_is_said_to_have_another_number(
    dataset: ReportDataset,
) -> None:
    with pytest.raises(ReportDatasetError, match="it has 2000 reports instead of 1000000000000"):
        list(replace(dataset.parts[0], n=10**12).arrays())


def test_what_is_no_regular_file_is_refused_at_once(dataset: ReportDataset) -> None:
    root = Path(dataset.url.removeprefix("file://"))
    for path in (path_of(dataset.parts[0]), root / "round.json"):
        path.unlink()
        os.mkfifo(path)
    with pytest.raises(ReportDatasetError, match=f"{dataset.parts[0].name} is not a regular file"):
        list(dataset.parts[0].arrays())
    for target in (None, "/dev/zero"):
        if target is not None:
            (root / "round.json").unlink()
            (root / "round.json").symlink_to(target)
        with pytest.raises(ReportDatasetError, match=r"round\.json is not a regular file"):
            ReportDataset.open(root)


def test_a_report_that_does_not_fit_is_named_by_its_part(dataset: ReportDataset) -> None:
    part = dataset.parts[1]
    rows = np.concatenate(list(part.arrays()))
    rows["bucket"][12] = 60_000
    entry, data = parts.encode(6, part.name, rows, part.dtype)
    path_of(part).write_bytes(data)
    bad = ReportDataset(
        dataset.url, dataset.export, (dataset.parts[0], replace(part, sha256=entry.sha256))
    )
    with pytest.raises(
        ReportDatasetError,
        match=f"the part hour=6/{part.name} of .*: report 12: the bucket must be",
    ):
        bad.tally()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("zip://x", "it is an archive"),
        ("simplecache::file:///x", "chained URLs are not supported"),
        ("zip://x::file:///a.zip", "chained URLs are not supported"),
        ("bogus://x", "unknown file system bogus"),
    ],
)
def test_a_url_that_nothing_opens_is_refused_in_a_sentence(url: str, said: str) -> None:
    with pytest.raises(ReportDatasetError, match=f"^cannot open {url}: {said}"):
        ReportDataset.open(url)


def test_a_file_system_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(
        ReportDatasetError, match=r"^cannot open s3://bucket/x: s3fs is not installed$"
    ):
        ReportDataset.open("s3://bucket/x")


def _table(columns: dict[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def test_any_reader_of_parquet_reads_it(any_dataset: ReportDataset) -> None:
    root = any_dataset.url.removeprefix("file://")
    table = datasets.dataset(
        root, format="parquet", partitioning="hive", exclude_invalid_files=True
    ).to_table()
    assert table.num_rows == N
    assert sorted(set(table["hour"].to_pylist())) == [5, 6]
    form = any_dataset.export.parameters.oracle.wire.dtype
    assert table.schema.names == [*(form.names or ["report"]), "hour"]
    metadata = pq.ParquetFile(path_of(any_dataset.parts[0])).metadata
    column = metadata.row_group(0).column(0)
    assert (column.compression, column.is_stats_set) == ("UNCOMPRESSED", False)
    assert "PLAIN" in column.encodings
    assert not any("DICTIONARY" in encoding for encoding in column.encodings)


def test_what_is_no_dataset_is_said(
    dataset: ReportDataset, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(ReportDatasetError, match=r"has no round\.json"):
        ReportDataset.open(empty)
    file = empty / "round.json"
    file.write_text("{}")
    with pytest.raises(ReportDatasetError, match="not an export"):
        ReportDataset.open(empty)
    root = Path(dataset.url.removeprefix("file://"))
    file.write_text((root / "round.json").read_text().replace('"hour": 5', '"hour": 6', 1))
    with pytest.raises(ReportDatasetError, match="checksum"):
        ReportDataset.open(empty)
    with pytest.raises(ReportDatasetError, match="nowhere://"):
        ReportDataset.open("nowhere://x")


def test_reports_are_of_the_form_that_the_documentation_has() -> None:
    forms = {
        np.dtype([("seed", "<u4"), ("bucket", "<u2")]): {
            "seed": pa.uint32(),
            "bucket": pa.uint16(),
        },
        np.dtype("<u4"): {"report": pa.uint32()},
        np.dtype(("u1", (13,))): {"report": pa.binary(13)},
        np.dtype([("a", ">u4"), ("b", "u1", (2, 3))]): {"a": pa.binary(4), "b": pa.binary(6)},
    }
    for form, expected in forms.items():
        assert (
            dict(zip(arrow_schema(form).names, arrow_schema(form).types, strict=True)) == expected
        )
        rows = np.frombuffer(np.random.default_rng(1).bytes(7 * form.itemsize), dtype=form)
        entry, data = parts.encode(5, "part-0.parquet", rows, form)
        assert entry == ReportPart(5, "part-0.parquet", 7, hashlib.sha256(data).hexdigest())
        (back,) = ParquetPart("", 5, entry.name, 7, entry.sha256, form)._arrays(bytes(data))
        assert back.tobytes() == rows.tobytes()

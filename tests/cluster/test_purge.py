"""Old hours of reports are deleted from a dataset, local or remote."""

from pathlib import Path

import pytest
from tests.cluster.conftest import MakeRound

from ldprecover_cluster import (
    DatasetWriter,
    ReportDataset,
    ReportDatasetError,
    purge,
    write_dataset,
)

pytest.importorskip(
    "pyarrow", reason="a report dataset needs the extra: pip install 'ldprecover[cluster]'"
)


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_deletes_hours_before_a_limit(make_round: MakeRound, tmp_path: Path, scheme: str) -> None:
    export, reports = make_round(3_000)
    url, work = f"{scheme}://{tmp_path}/round", tmp_path / "work"
    packed = reports.tobytes()
    half = len(packed) // 2
    write_dataset(url, export, {5: 1_500, 6: 1_500}, [(5, packed[:half]), (6, packed[half:])])
    with pytest.raises(ReportDatasetError, match="of another round"):
        purge(url, work, "R0", 9)
    for before, earliest in ((5, 5), (6, 6), (6, 6), (7, None), (7, None)):
        assert purge(url, work, export.round, before) == earliest
        dataset = ReportDataset.open(url)
        assert {part.hour for part in dataset.parts} == set(range(earliest or 7, 7))
        assert dataset.export.tally == export.tally
        lengths = [len(array) for part in dataset.parts for array in part.arrays()]
        assert sum(lengths) == 3_000 - dataset.missing
    with pytest.raises(FileNotFoundError):
        purge(f"{url}s", work, export.round, 9)


def test_leaves_a_dataset_to_its_writer(tmp_path: Path) -> None:
    with (
        DatasetWriter(tmp_path / "round") as writer,
        pytest.raises(ReportDatasetError, match="another command"),
    ):
        purge(tmp_path / "round", writer.work, "R1", 9)

"""Reports of hours that are over leave a dataset, wherever it is."""

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
def test_hours_that_are_over_are_deleted(
    make_round: MakeRound, tmp_path: Path, scheme: str
) -> None:
    export, reports = make_round(3_000)
    url, work = f"{scheme}://{tmp_path}/round", tmp_path / "work"
    packed = reports.tobytes()
    half = len(packed) // 2
    write_dataset(url, export, {5: 1_500, 6: 1_500}, [(5, packed[:half]), (6, packed[half:])])
    for before, left in ((5, 5), (6, 6), (6, 6), (7, None), (7, None)):
        assert purge(url, work, export.round, before) == left
        dataset = ReportDataset.open(url)
        assert {part.hour for part in dataset.parts} == set(range(left or 7, 7))
        assert dataset.export.tally == export.tally
        assert (
            sum(len(array) for part in dataset.parts for array in part.arrays())
            == 3_000 - dataset.missing
        )
    with pytest.raises(ReportDatasetError, match="of another round"):
        purge(url, work, "R0", 9)
    with pytest.raises(FileNotFoundError):
        purge(f"{url}s", work, export.round, 9)


def test_what_another_process_writes_is_left_to_it(make_round: MakeRound, tmp_path: Path) -> None:
    with (
        DatasetWriter(tmp_path / "round") as writer,
        pytest.raises(ReportDatasetError, match="another command"),
    ):
        purge(tmp_path / "round", writer.work, "R1", 9)

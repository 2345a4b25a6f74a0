"""A dataset is written: all of a round's reports and no others, hidden among those of their hour."""

import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.cluster.conftest import MakeRound

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.types import Reports

pytest.importorskip("pyarrow", reason="a report dataset needs the extra: pip install 'ldprecover[cluster]'")

from ldprecover_cluster import DatasetWriter, ReportDataset, ReportDatasetError, division, write_dataset


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has some thousand reports of the test's rounds at the most."""
    monkeypatch.setattr(division, "_PAIRS", 11 * 1_500)


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
    return np.concatenate([array for part in dataset.parts if hour in (None, part.hour) for array in part.arrays()])


HOURS = {470_000: 3_000, 470_001: 400, 470_005: 1_700, 470_009: 100}


def test_each_hour_has_its_reports_and_they_give_the_tally(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(sum(HOURS.values()))
    dataset = write_dataset(tmp_path / "round", export, HOURS, by_hour(reports, HOURS))
    oracle = export.parameters.oracle
    assert Tally.of(oracle, read(dataset)) == export.tally
    # The hours of 400 and of 100 reports are joined with a neighbour, and stand under the earlier hour.
    for hour, first, n in ((470_000, 0, 3_000), (470_001, 3_000, 2_200)):
        assert rows(read(dataset, hour)) == rows(reports[first : first + n])
    assert len(dataset.parts) > 3
    assert (dataset.n, dataset.missing) == (len(reports), 0)
    found = {str(path.relative_to(tmp_path / "round")) for path in (tmp_path / "round").rglob("*") if path.is_file()}
    assert found == {"round.json", *(f"hour={part.hour}/{part.name}" for part in dataset.parts)}


def test_the_rounds_file_is_an_export_as_any(make_round: MakeRound, tmp_path: Path) -> None:
    export, reports = make_round(1_200)
    write_dataset(tmp_path, export, {5: 1_200}, by_hour(reports, {5: 1_200}))
    again = RoundExport.from_json((tmp_path / "round.json").read_bytes())
    assert (again.round, again.name, again.parameters) == (export.round, export.name, export.parameters)
    assert again.tally == export.tally
    assert again.reports is not None
    assert sum(part.n for part in again.reports) == 1_200

"""Cells as tasks of a cluster have the numbers of this machine's processes."""

import csv
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tools.dask_cluster import DaskCluster

from ldprecover_cluster import Scheduler

pytest.importorskip(
    "distributed", reason="the extra `cluster` is not installed: no cell runs on a cluster"
)


def rows(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the cells, sorted, without their times."""
    with (folder / "cells.csv").open(newline="", encoding="utf-8") as file:
        cells = [row | {"seconds": ""} for row in csv.DictReader(file)]
    return sorted(cells, key=lambda row: list(row.values()))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of four cells; one method reads reports, so each cell is a task."""
    file = tmp_path / "study.toml"
    file.write_text(
        'data = "cities"\nprotocols = ["grr", "olh"]\nusers = 500\ntrials = 2\n'
        'attacks = ["mga"]\nmethods = ["ldprecover", "diffstats"]\n'
    )
    return file


def test_a_study_has_the_same_numbers_on_a_cluster(
    run: Run, dask_cluster: DaskCluster, study: Path, tmp_path: Path
) -> None:
    local, remote = tmp_path / "local", tmp_path / "remote"
    run(f"study run {study} --out {local} --jobs 1").succeeds()
    run(f"study run {study} --out {remote} {dask_cluster.options}").succeeds()
    assert rows(remote) == rows(local)
    assert len({row["trial"] + row["protocol"] for row in rows(local)}) == 4


def test_a_lost_cluster_is_an_error_that_says_how_to_continue(
    run: Run, broken_scheduler: Scheduler, study: Path, tmp_path: Path
) -> None:
    url = broken_scheduler.url
    result = run(f"study run {study} --out {tmp_path / 'out'} --scheduler {url}")
    assert result.code == 1
    error = result.err.splitlines()[-1]
    assert error.startswith(f"error: the scheduler {url} cannot be reached: ")
    assert "Finished cells are stored, and the same command runs the others" in error

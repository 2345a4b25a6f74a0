"""Cells as tasks of a cluster: the numbers are those of this machine's processes."""

import csv
from pathlib import Path

import pytest
from tests.dask_cluster import DaskCluster

from ldprecover_cli.app import run

pytest.importorskip(
    "distributed", reason="the extra `cluster` is not installed: no cell runs on a cluster"
)


def rows(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the cells, in order, without how long they took."""
    with (folder / "cells.csv").open(newline="", encoding="utf-8") as file:
        found = [
            {name: value for name, value in row.items() if name != "seconds"}
            for row in csv.DictReader(file)
        ]
    return sorted(found, key=lambda row: list(row.values()))


def test_the_numbers_of_a_study_are_the_same_from_a_cluster(
    dask_cluster: DaskCluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One method reads reports, so that each cell is a task."""
    study = (
        'data = "cities"\nprotocols = ["grr", "olh"]\nusers = 500\ntrials = 2\nattacks = ["mga"]\n'
    )
    (file := tmp_path / "study.toml").write_text(
        study + 'methods = ["ldprecover", "diffstats"]\n', encoding="utf-8"
    )
    here, there = tmp_path / "here", tmp_path / "there"
    assert run(["reproduce", str(file), "--out", str(here), "--jobs", "1"]) == 0
    assert run(["reproduce", str(file), "--out", str(there), "--scheduler", dask_cluster.url]) == 0
    assert rows(there) == rows(here)
    assert len({row["trial"] + row["protocol"] for row in rows(here)}) == 4


def test_a_lost_cluster_is_said_and_what_was_done_is_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    study = (
        'data = "cities"\nprotocols = "grr"\nusers = 500\ntrials = 1\nattacks = '
        '["none"]\nmethods = ["norm-sub"]\n'
    )
    (file := tmp_path / "study.toml").write_text(study, encoding="utf-8")
    # Port 9, discard: nobody listens there.
    assert (
        run(
            [
                "reproduce",
                str(file),
                "--out",
                str(tmp_path / "out"),
                "--scheduler",
                "tcp://127.0.0.1:9",
            ]
        )
        == 1
    )
    said = capfd.readouterr().err.splitlines()[-1]
    assert "error: the scheduler tcp://127.0.0.1:9 cannot be reached: " in said
    assert "Finished cells are stored, and the same command runs the others" in said

"""`export --reports`: a round with all its reports as a folder, beside a server that runs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import ServerProcess

from ldprecover import RoundParameters, Tally
from ldprecover_cluster import ReportDataset

pytest.importorskip(
    "pyarrow", reason="a report dataset needs the extra: pip install 'ldprecover[cluster]'"
)

ORACLE = RoundParameters("olh", 1.0, tuple("abcd")).oracle
N = 6_000

_SLOWLY = """
import sys
from ldprecover_cluster import writer
from ldprecover_cluster import partitioning

partitioning.PAIRS = 4 * 1_500
write_part = writer.DatasetWriter._write_part

def slowly(self, place, *more):
    if place == 2:
        print("two parts are made", flush=True)
        sys.stdin.readline()
    return write_part(self, place, *more)

writer.DatasetWriter._write_part = slowly
from ldprecover_cli import main
main()
"""
"""The command, which makes small parts and waits after two."""


@pytest.fixture
def collected(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    """A round on the server, whose database is in the environment."""
    monkeypatch.setenv("LDPRECOVER_DATABASE_URL", server.database_url)
    id: str = server.open_round("olh", 1.0)["id"]
    reports = ORACLE.perturb(np.arange(N) % 4, np.random.default_rng(3))
    for start in range(0, N, 500):
        assert server.submit(id, reports[start : start + 500].tobytes()).status_code == 202
    return id


@pytest.fixture
def slow(tmp_path: Path, collected: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, that has made two parts and waits."""
    command = [
        sys.executable,
        "-c",
        _SLOWLY,
        "export",
        collected,
        "--reports",
        str(tmp_path / "round"),
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "two parts are made\n"
        yield process
        process.kill()


def recount(folder: Path) -> Tally:
    dataset = ReportDataset.open(folder)
    arrays = [array for part in dataset.parts for array in part.arrays()]
    assert sum(map(len, arrays)) == dataset.n
    return Tally.of(ORACLE, np.concatenate(arrays))


def test_a_round_is_exported_while_its_server_runs(
    run: Any, server: ServerProcess, collected: str, tmp_path: Path
) -> None:
    done = run("export", collected, "--reports", "round")
    assert done.code == 0, done.err
    assert f"{N:,} reports in 1 part are in round" in done.err
    counts = run("export", collected, "--url", server.url, "--key", server.admin_key).json
    written = json.loads((tmp_path / "round" / "round.json").read_text())
    written.pop("reports")
    written.pop("checksum")
    assert written == {name: value for name, value in counts.items() if name != "checksum"}
    assert recount(tmp_path / "round").summary.tolist() == counts["counts"]
    assert run("recompute", "round/round.json").json["counts"] == counts["counts"]
    assert (
        server.submit(
            collected, ORACLE.perturb([0], np.random.default_rng(1)).tobytes()
        ).status_code
        == 202
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
def test_the_same_command_goes_on_whatever_ended_it(
    run: Any, slow: subprocess.Popen[str], collected: str, tmp_path: Path, number: signal.Signals
) -> None:
    slow.send_signal(number)
    _, said = slow.communicate()
    assert slow.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130}[number]
    assert number == signal.SIGKILL or "the same command resumes" in said
    finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "round").glob("hour=*/*")}
    assert len(finished) == 2
    assert not (tmp_path / "round" / "round.json").exists()
    done = run("export", collected, "--reports", "round")
    assert done.code == 0, done.err
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert recount(tmp_path / "round") == ReportDataset.open(tmp_path / "round").export.tally


def test_what_cannot_be_exported_is_said_in_a_line(
    run: Any, collected: str, tmp_path: Path
) -> None:
    assert "has an export" not in run("export", "nowhere", "--reports", "round").error
    assert not (tmp_path / "round").exists()
    assert "--partial needs --reports" in run("export", collected, "--partial").error
    assert (
        "give either --reports"
        in run("export", collected, "--reports", "round", "--output", "x.json").error
    )
    assert run("export", collected, "--reports", "round").code == 0
    assert "already has a round.json" in run("export", collected, "--reports", "round").error
    assert "nothing://x: " in run("export", collected, "--reports", "nothing://x").error
    for folder, why in (
        ("", "it is empty"),
        ("memory://x", "in memory"),
        ("simplecache::memory://x", "in memory"),
    ):
        refused = run("export", collected, "--reports", folder)
        assert refused.code == 2
        assert why in refused.error
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/round"):
        assert (
            f"{tmp_path / 'file'} is a file, not a folder"
            in run("export", collected, "--reports", folder).error
        )


def test_a_database_that_does_not_answer_is_said_once(run: Any) -> None:
    refused = run(
        "export",
        "x",
        "--reports",
        "x",
        "--database-url",
        "postgresql+psycopg://x@/x?host=/no/such/folder",
    )
    assert refused.code == 2
    assert refused.err.count("/no/such/folder/") == 1


def test_without_pyarrow_the_extra_is_named(
    run: Any, collected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    assert (
        "pip install 'ldprecover[cluster]'" in run("export", collected, "--reports", "round").error
    )

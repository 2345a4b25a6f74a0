"""`export --reports`: a round with all its reports as a folder, beside a running server."""

import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import RoundParameters, Tally
from ldprecover_cluster import ReportDataset, partitioning
from ldprecover_cluster.writer import DatasetWriter

pytest.importorskip(
    "pyarrow", reason="a report dataset needs the extra: pip install 'ldprecover[cluster]'"
)

ORACLE = RoundParameters("olh", 1.0, tuple("abcd")).oracle
N = 6_000


@pytest.fixture
def collected(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    """A round on the server, whose database is in the environment."""
    monkeypatch.setenv("LDPRECOVER_DATABASE_URL", server.database_url)
    id: str = server.open_round("olh", 1.0)["id"]
    reports = ORACLE.perturb(np.arange(N) % 4, np.random.default_rng(3))
    for start in range(0, N, 2_000):
        packed = reports[start : start + 2_000].tobytes()
        assert server.submit(id, packed).status_code == 202
    return id


def recount(folder: str) -> Tally:
    """Count the reports of a dataset."""
    dataset = ReportDataset.open(folder)
    arrays = [array for part in dataset.parts for array in part.arrays()]
    assert sum(map(len, arrays)) == dataset.n
    return Tally.of(ORACLE, np.concatenate(arrays))


def test_exports_a_round_of_a_running_server(
    run: Run, server: ServerProcess, collected: str
) -> None:
    done = run(f"file dataset {collected} --output round").succeeds()
    name = server.http.get(f"/rounds/{collected}").json()["name"]
    assert done.err.endswith(f"{N:,} reports of {name} in 1 part are in round\n")
    counts = run(f"round export {collected} --url {server.url} --key {server.admin_key}").json
    written = json.loads(Path("round/_round.json").read_text())
    assert written["reports"]
    assert written | {"checksum": "", "reports": ""} == counts | {"checksum": "", "reports": ""}
    assert recount("round").summary.tolist() == counts["counts"]
    assert run("file recompute round/_round.json").json["counts"] == counts["counts"]
    late = ORACLE.perturb([0], np.random.default_rng(1)).tobytes()
    assert server.submit(collected, late).status_code == 202


def test_the_same_command_resumes_an_interrupted_export(
    run: Run, collected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes before the third part."""
    monkeypatch.setattr(partitioning, "PAIRS", 4 * 1_500)
    write_part = DatasetWriter._write_part

    def interrupted(self: DatasetWriter, index: int, *arguments: object) -> object:
        if index == 2:
            signal.raise_signal(signal.SIGINT)
        return write_part(self, index, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(DatasetWriter, "_write_part", interrupted)
        stopped = run(f"file dataset {collected} --output round")
    assert stopped.code == 130
    assert "the same command resumes" in stopped.err
    finished = {path: path.stat().st_mtime_ns for path in Path("round").glob("hour=*/*")}
    assert len(finished) == 2
    assert not Path("round/_round.json").exists()
    run(f"file dataset {collected} --output round").succeeds()
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert recount("round") == ReportDataset.open("round").export.tally


def test_names_the_reason_why_a_round_cannot_be_exported(
    run: Run, collected: str, tmp_path: Path
) -> None:
    assert "nowhere" in run("file dataset nowhere --output round").fails(1)
    assert not Path("round").exists()
    run(f"file dataset {collected} --output round").succeeds()
    Path("file").touch()
    for options, code, message in (
        ("--output round", 1, "already has a _round.json"),
        ("--output nothing://x", 1, "nothing://x: "),
        ("--output ''", 2, "it is empty"),
        ("--output memory://x", 2, "in memory"),
        ("--output simplecache::memory://x", 2, "in memory"),
        ("--output file", 1, f"{tmp_path / 'file'} is a file, not a folder"),
        ("--output file/round", 1, f"{tmp_path / 'file'} is a file, not a folder"),
    ):
        assert message in run(f"file dataset {collected} {options}").fails(code)


def test_names_an_unreachable_database_once(run: Run) -> None:
    url = "postgresql+psycopg://x@/x?host=/no/such/folder"
    error = run(f"file dataset x --output x --database-url {url}").fails(2)
    assert error.count("/no/such/folder/") == 1


def test_names_the_extra_without_pyarrow(
    run: Run, collected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    error = run(f"file dataset {collected} --output round").error
    assert "pip install 'ldprecover[cluster]'" in error

"""`file dataset`: a round with all its reports as a folder, beside a running server."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import RoundParameters

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


def test_writes_a_round_of_a_running_server(
    run: Run, server: ServerProcess, collected: str
) -> None:
    done = run(f"file dataset {collected} --output round").succeeds()
    name = server.http.get(f"/rounds/{collected}").json()["name"]
    assert done.err.endswith(f"{N:,} reports of {name} in 1 file are in round\n")
    late = ORACLE.perturb([0], np.random.default_rng(1)).tobytes()
    assert server.submit(collected, late).status_code == 202
    result = run("file recompute round --method fiad").json
    assert result["n"] == N
    assert run("file recompute round/_round.json").json["counts"] == result["counts"]
    assert "fiad" in run("file recompute round/_round.json --method fiad").fails(2)
    files = [Path("round"), *Path("round").iterdir()]
    assert not any(file.stat().st_mode & 0o077 for file in files)


def test_names_the_reason_why_a_round_cannot_be_exported(
    run: Run, server: ServerProcess, collected: str
) -> None:
    assert "nowhere" in run("file dataset nowhere --output round").fails(1)
    assert not Path("round").exists()
    run(f"file dataset {collected} --output round").succeeds()
    Path("file").touch()
    for folder in ("round", "nothing://x", "file", "file/round"):
        assert folder in run(f"file dataset {collected} --output {folder}").fails(1)
    none = server.open_round("olh", 1.0, retention="none")["id"]
    assert server.submit(none, ORACLE.perturb([0], np.random.default_rng(1)).tobytes())
    assert "stores 0 of its 1 reports" in run(f"file dataset {none} --output none").fails(1)
    assert not Path("none").exists()


def test_names_an_unreachable_database_once(run: Run) -> None:
    url = "postgresql+psycopg://x@/x?host=/no/such/folder"
    error = run(f"file dataset x --output x --database-url {url}").fails(2)
    assert error.count("/no/such/folder/") == 1


def test_names_the_extra_without_pyarrow(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("ldprecover_cluster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for line in ("file dataset x --output x", "file recompute ."):
        assert "pip install 'ldprecover[cluster]'" in run(line).fails(1)


def test_recompute_adds_exports(run: Run, server: ServerProcess, collected: str) -> None:
    options = f"--url {server.url} --key {server.admin_key}"
    other = server.open_round("olh", 1.0)["id"]
    assert server.submit(other, ORACLE.perturb([0], np.random.default_rng(1)).tobytes())
    for id in (collected, other):
        run(f"round export {id} {options} --output {id}.json").succeeds()
    files = f"{collected}.json {other}.json"
    result = run(f"file recompute {files}").json
    assert (result["round"], result["n"]) == (f"{collected}+{other}", N + 1)
    one, two = (run(f"file recompute {id}.json").json["counts"] for id in (collected, other))
    assert result["counts"] == np.add(one, two).tolist()
    assert "would count twice" in run(f"file recompute {files} {other}.json").fails(2)
    run(f"file dataset {collected} --output round").succeeds()
    assert "not both" in run(f"file recompute round {other}.json").fails(2)
    assert "--scheduler needs" in run(f"file recompute {files} --scheduler tcp://a:1").fails(2)

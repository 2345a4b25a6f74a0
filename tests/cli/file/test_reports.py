"""`file reports`: a round with all its reports as a file, beside a running server."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover import RoundParameters

ORACLE = RoundParameters("olh", 1.0, tuple("abcd")).oracle
N = 6_000
ONE = ORACLE.perturb([0], np.random.default_rng(1)).tobytes()


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


@pytest.mark.parametrize("method", ["fiad", "unmix"])
def test_recovery_from_a_file_equals_the_servers(
    on_server: Run, server: ServerProcess, collected: str, method: str
) -> None:
    """To the bit; a report that comes after the file is in neither."""
    shown = on_server(f"result recover {collected} --method {method} --json").json
    done = on_server(f"file reports {collected} --output round.parquet").succeeds()
    name = server.http.get(f"/rounds/{collected}").json()["name"]
    assert done.err.endswith(f"{N:,} reports of {name} are in round.parquet\n")
    assert server.submit(collected, ONE).status_code == 202
    Path("round.parquet").rename("round")  # its content says what it is
    result = on_server(f"file recompute round --method {method}").json
    assert result["n"] == N
    for field in ("eta", "malicious", "genuine", "recovered", "notes"):
        assert result[field] == shown[field], field


def test_names_the_reason_why_a_round_cannot_be_exported(
    run: Run, server: ServerProcess, collected: str
) -> None:
    Path("file").touch()
    none = server.open_round("olh", 1.0, retention="none")["id"]
    assert server.submit(none, ONE).status_code == 202
    before = [*Path().iterdir()]
    assert "nowhere" in run("file reports nowhere --output round").fails(1)
    assert "a file of this name exists" in run(f"file reports {collected} --output file").fails(2)
    assert "no folder new" in run(f"file reports {collected} --output new/round").fails(2)
    assert "stores 0 of its 1 reports" in run(f"file reports {none} --output none").fails(2)
    assert [*Path().iterdir()] == before


def test_names_an_unreachable_database_once(run: Run) -> None:
    url = "postgresql+psycopg://x@/x?host=/no/such/folder"
    error = run(f"file reports x --output x --database-url {url}").fails(2)
    assert error.count("/no/such/folder/") == 1


def test_names_the_extra_without_pyarrow(
    run: Run, collected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("round").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for line in (f"file reports {collected} --output x", "file recompute round"):
        assert "pip install 'ldprecover[parquet]'" in run(line).fails(2)


def test_recompute_adds_files_of_one_kind(
    on_server: Run, server: ServerProcess, collected: str
) -> None:
    other = server.open_round("olh", 1.0)["id"]
    assert server.submit(other, ONE).status_code == 202
    for id in (collected, other):
        on_server(f"round export {id} --output {id}.json").succeeds()
        on_server(f"file reports {id} --output {id}.parquet").succeeds()
    files = f"{collected}.json {other}.json"
    result = on_server(f"file recompute {files}").json
    assert (result["round"], result["n"]) == (f"{collected}+{other}", N + 1)
    one, two = (on_server(f"file recompute {id}.json").json["counts"] for id in (collected, other))
    assert result["counts"] == np.add(one, two).tolist()
    with_reports = files.replace("json", "parquet")
    assert on_server(f"file recompute {with_reports}").json["counts"] == result["counts"]
    mixed = f"{collected}.parquet {other}.json"
    assert "that all have reports" in on_server(f"file recompute {mixed}").fails(2)
    assert "fiad" in on_server(f"file recompute {files} --method fiad").fails(2)

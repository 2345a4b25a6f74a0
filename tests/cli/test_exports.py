"""`export`, `recompute` and `migrate`: a round as a file, and a schema of this version."""

import json
from pathlib import Path

import pytest
from tests.conftest import ServerProcess

from ldprecover_cli.app import run


@pytest.fixture
def exported(server: ServerProcess, tmp_path: Path) -> tuple[str, Path]:
    round = server.open_round("oue", domain_size=4)["id"]
    for i in range(3):
        assert server.submit(round, bytes([3 + i])).status_code == 202
    file = tmp_path / "round.json"
    assert run(["export", round, "--url", server.url, "--output", str(file)]) == 0
    return round, file


def test_recompute_prints_the_servers_numbers(
    server: ServerProcess, exported: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    round, file = exported
    capsys.readouterr()
    assert run(["recompute", str(file), "--target", "1", "--eta", "0.1"]) == 0
    found = json.loads(capsys.readouterr().out)
    frequencies = server.frequencies(round)
    recovered = server.http.post(f"/rounds/{round}/recover", json={"targets": ["1"], "eta": 0.1}).json()
    for column in ("counts", "frequencies", "standard_errors", "items", "n", "round"):
        assert found[column] == frequencies[column]
    for column in ("malicious", "genuine", "recovered", "targets", "eta", "notes"):
        assert found[column] == recovered[column]


def test_an_export_without_a_file_goes_to_standard_output(
    server: ServerProcess, exported: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    round, file = exported
    capsys.readouterr()
    assert run(["export", round, "--url", server.url]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(file.read_text(encoding="utf-8"))


def test_an_export_overwrites_nothing(
    server: ServerProcess, exported: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    round, file = exported
    assert run(["export", round, "--url", server.url, "--output", str(file)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_changed_file_is_refused(exported: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    _, file = exported
    file.write_text(file.read_text(encoding="utf-8").replace('"n": 3', '"n": 4'), encoding="utf-8")
    assert run(["recompute", str(file)]) == 2
    assert "checksum" in capsys.readouterr().err


def test_migrate_says_what_it_did_and_then_that_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    assert run(["migrate", "--database-url", url]) == 0
    assert "0001" in capsys.readouterr().err
    assert run(["migrate", "--database-url", url]) == 0
    assert "already" in capsys.readouterr().err


def test_migrate_of_an_impossible_database_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["migrate", "--database-url", "mysql://x"]) == 2
    assert "postgresql" in capsys.readouterr().err

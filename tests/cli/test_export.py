"""`export`, `recompute` and `migrate`: a round as a file, and a schema of this version."""

import json
import resource
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
    recovered = server.http.post(
        f"/rounds/{round}/recover", json={"targets": ["1"], "eta": 0.1}
    ).json()
    for column in ("counts", "frequencies", "standard_errors", "items", "n", "round"):
        assert found[column] == frequencies[column]
    for column in ("malicious", "genuine", "recovered", "targets", "eta", "notes"):
        assert found[column] == recovered[column]


def test_recompute_takes_options_and_a_support(
    server: ServerProcess,
    exported: tuple[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    round, file = exported
    shares = tmp_path / "shares.txt"
    shares.write_text("0.9\n0.1\n0\n0.5\n", encoding="utf-8")
    for options, fields in (
        (
            ["--method", "base-cut", "--option", "alpha=1"],
            {"method": "base-cut", "options": {"alpha": 1}},
        ),
        (
            ["--malicious-model", "custom", "--support", str(shares)],
            {"malicious_model": "custom", "support": [0.9, 0.1, 0, 0.5]},
        ),
    ):
        capsys.readouterr()
        assert run(["recompute", str(file), *options]) == 0
        found = json.loads(capsys.readouterr().out)
        recovered = server.http.post(f"/rounds/{round}/recover", json=fields).json()
        for column in ("malicious", "recovered", "notes"):
            assert found[column] == recovered[column]
    assert run(["recompute", str(file), "--option", "alpha"]) == 2
    assert "--option takes a name and a number" in capsys.readouterr().err


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


def test_an_export_that_does_not_fit_on_the_disk_leaves_no_file(
    server: ServerProcess,
    exported: tuple[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "half.json"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        code = run(["export", exported[0], "--url", server.url, "--output", str(output)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 2
    assert "cannot write" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(
    ("written", "instead"), [('"n": 3', '"n": 4'), ('"round": "R', '"round": "S')]
)
def test_a_changed_file_is_refused(
    exported: tuple[str, Path], capsys: pytest.CaptureFixture[str], written: str, instead: str
) -> None:
    _, file = exported
    text = file.read_text(encoding="utf-8")
    assert written in text
    file.write_text(text.replace(written, instead), encoding="utf-8")
    assert run(["recompute", str(file)]) == 2
    assert "checksum" in capsys.readouterr().err


def test_migrate_says_what_it_did_and_then_that_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    assert run(["migrate", "--database-url", url]) == 0
    assert "0001" in capsys.readouterr().err
    assert run(["migrate", "--database-url", url]) == 0
    assert "up to date" in capsys.readouterr().err


def test_migrate_of_an_impossible_database_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["migrate", "--database-url", "mysql://x"]) == 2
    assert "postgresql" in capsys.readouterr().err

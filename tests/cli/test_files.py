"""Files that the command line names, and that are something else."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("round export {round} --output folder", "write"),
        ("admin key create --output folder --database-url sqlite:///keys.db", "write"),
        ("file recompute round.json --history folder", "read"),
        ("result recover {round} --support folder", "read"),
        ("round open --epsilon 1 --items folder", "read"),
        ("sim users {round} --users 1 --tickets folder", "read"),
        ("demo --part analyst --key-file folder", "read"),
    ],
)
def test_names_a_folder_that_should_be_a_file(
    on_server: Run, lunch: dict[str, Any], line: str, action: str
) -> None:
    on_server(f"round export {lunch['name']} --output round.json").succeeds()
    Path("folder").mkdir()
    Path("keys.db").touch()
    before = sorted(Path().rglob("*"))
    error = on_server(line.format(round=lunch["name"])).fails(2)
    assert error == f"cannot {action} folder: it is a folder"
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("command", ["serve --port 0", "admin check"])
def test_names_a_database_that_is_not_a_file(run: Run, tmp_path: Path, command: str) -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe")
    before = sorted(tmp_path.iterdir())
    for name, kind in (("folder", "a folder"), ("pipe", "not a regular file")):
        error = run(f"{command} --database-url sqlite:///{name}").fails(2)
        assert error == f"the database must be a file: {tmp_path / name} is {kind}"
    assert sorted(tmp_path.iterdir()) == before


def test_a_ledger_that_is_a_folder_is_one_sentence(run: Run, tmp_path: Path) -> None:
    error = run("send ledger --ledger", str(tmp_path)).fails(1)
    assert error == f"{tmp_path} is not a regular file"

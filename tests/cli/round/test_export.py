"""`export`, `recompute` and `migrate`: a round as a file, and a schema of this version."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess


@pytest.fixture
def exported(on_server: Run, server: ServerProcess) -> str:
    """The id of a round that is exported to round.json."""
    id: str = server.open_round("oue", domain_size=4)["id"]
    for i in range(3):
        assert server.submit(id, bytes([3 + i])).status_code == 202
    on_server(f"round export {id} --output round.json").succeeds()
    return id


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ("", {"method": "auto"}),
        (
            "--method ldprecover --target 1 --eta 0.1",
            {"method": "ldprecover", "targets": ["1"], "eta": 0.1},
        ),
    ],
)
def test_recompute_prints_the_servers_numbers(
    run: Run, server: ServerProcess, exported: str, options: str, fields: dict[str, Any]
) -> None:
    result = run(f"file recompute round.json {options}").json
    recovered = server.http.post(f"/rounds/{exported}/recover", json=fields).json()
    for response, columns in (
        (server.frequencies(exported), "counts frequencies standard_errors items n round"),
        (recovered, "malicious genuine recovered targets eta notes"),
    ):
        for column in columns.split():
            assert result[column] == response[column]


def test_export_writes_to_standard_output_or_a_new_file(on_server: Run, exported: str) -> None:
    assert on_server(f"round export {exported}").json == json.loads(Path("round.json").read_text())
    again = on_server(f"round export {exported} --output round.json").fails(2)
    assert (
        again
        == "cannot write round.json: a file of this name exists; delete it, or give another name"
    )


def test_only_migrate_migrates_and_names_the_revisions(run: Run) -> None:
    with closing(sqlite3.connect("new.db")) as connection:
        connection.execute("PRAGMA user_version = 1")  # writes the file
    line = f"admin migrate --database-url sqlite:///{Path('new.db').resolve()}"
    for other in ("admin key list", "admin key create", "admin key revoke x", "admin check"):
        assert f"run: ldprecover {line}" in run(f"{other} --database-url sqlite:///new.db").fails(2)
    assert "0001" in run(line).succeeds().err
    assert "up to date" in run(line).succeeds().err

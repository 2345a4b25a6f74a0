"""`check`: reports inconsistencies of a database as a table or JSON, and by its exit code."""

from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.cli.conftest import Run

from ldprecover import RoundParameters
from ldprecover_server.storage import Storage
from ldprecover_server.storage.schema import segments


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The default database, with a round."""
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    with closing(Storage(url)) as store:
        store.prepare()
        store.rounds.open("R1", "cities", RoundParameters("grr", 1.0, ("a", "b")), retention="none")
    return url


def test_consistent_database_has_no_findings(run: Run, url: str) -> None:
    done = run("admin check").succeeds()
    assert (done.out, done.err.strip()) == ("", "The database is consistent.")
    assert run("admin check --json").json == {"findings": []}


def test_findings_are_a_table_or_json_with_exit_code_1(run: Run, url: str) -> None:
    with closing(Storage(url)) as store, store.database.write() as connection:
        connection.execute(sa.insert(segments).values(round=1, hour=1, n=1, data=bytes(4)))
    shown, listed = run("admin check"), run("admin check --json")
    assert (shown.code, listed.code) == (1, 1)
    assert "cities" in shown.out
    assert "reports in segments" in shown.out
    finding = {
        "round": "cities",
        "what": "reports in segments",
        "expected": 0,
        "found": 1,
        "fault": True,
    }
    assert listed.json == {"findings": [finding]}


@pytest.mark.parametrize("line", ["admin check", "admin key list"])
def test_damaged_file_is_one_line(run: Run, url: str, tmp_path: Path, line: str) -> None:
    """The first two pages, with the beginning of the schema, stay."""
    file = tmp_path / "ldprecover.db"
    content = file.read_bytes()
    file.write_bytes(content[:8192] + b"\x5a" * (len(content) - 8192))
    done = run(line)
    assert "damaged" in done.error or "malformed" in done.error
    assert done.code in (1, 2)
    assert "a fault of ldprecover" not in done.err
    assert "sqlalche.me" not in done.err

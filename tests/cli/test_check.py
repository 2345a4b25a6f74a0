"""`check`: says in words or JSON what in a database does not agree, and by its exit code whether
anything does not.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ldprecover import RoundParameters
from ldprecover_server.storage import Storage
from ldprecover_server.storage.schema import rounds


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    with closing(Storage(url)) as storage:
        storage.prepare()
        storage.rounds.open("R1", "cities", RoundParameters("grr", 1.0, ("a", "b")), retention=24)
    return url


def damage(url: str) -> None:
    with closing(Storage(url)) as storage, storage.database.write() as connection:
        connection.execute(sa.update(rounds).values(purged=-3))


def test_a_database_that_agrees_is_said_so(run: Any, url: str) -> None:
    done = run("check", "--database-url", url)
    assert (done.code, done.out, done.err.strip()) == (0, "", "The database is consistent.")
    assert run("check", "--database-url", url, "--json").json == {"findings": []}


def test_what_does_not_agree_is_a_table_or_json_and_exit_code_1(run: Any, url: str) -> None:
    damage(url)
    shown = run("check", "--database-url", url)
    assert shown.code == 1
    assert "cities" in shown.out
    assert "reports in segments, -3 being purged" in shown.out
    told = run("check", "--database-url", url, "--json")
    assert told.code == 1
    finding = {
        "round": "cities",
        "what": "reports in segments, -3 being purged",
        "expected": 3,
        "found": 0,
    }
    assert told.json == {"findings": [{**finding, "fault": True}]}


def test_a_database_that_is_not_there_is_not_made(run: Any, tmp_path: Path) -> None:
    done = run("check", "--database-url", f"sqlite:///{tmp_path / 'none.db'}")
    assert done.code == 2
    assert "there is no database" in done.err
    assert list(tmp_path.iterdir()) == []


def test_rejects_a_database_of_a_newer_schema(run: Any, url: str) -> None:
    with closing(Storage(url)) as storage, storage.database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    done = run("check", "--database-url", url)
    assert done.code == 2
    assert "schema 9999, of a newer version of ldprecover" in done.err


@pytest.mark.parametrize("command", [("check",), ("key", "list")], ids=" ".join)
def test_a_damaged_file_is_called_damaged_in_one_line(
    run: Any, url: str, tmp_path: Path, command: tuple[str]
) -> None:
    file = tmp_path / "ldprecover.db"
    whole = file.read_bytes()
    with file.open(
        "r+b"
    ) as damaged:  # all but the first two pages, which hold the schema's beginning
        damaged.seek(2 * 4096)
        damaged.write(b"\x5a" * (len(whole) - 2 * 4096))
    done = run(*command, "--database-url", url)
    assert done.code in (1, 2)
    assert "damaged" in done.error or "malformed" in done.error
    assert "a fault of ldprecover" not in done.err
    assert "sqlalche.me" not in done.err

"""`key` and `ticket`: create, list and revoke, and what they admit."""

import stat
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from ldprecover_server.storage import Storage

DATABASE = "sqlite:///keys.db"


@pytest.fixture
def key(run: Run) -> Run:
    """Run a `key` command on a new database."""
    with closing(Storage(DATABASE)) as storage:
        storage.prepare()
    return lambda line: run(f"admin key {line} --database-url {DATABASE}")


def test_prints_only_the_key_and_lists_keys_without_it(key: Run) -> None:
    created = key("create users --scope report").succeeds()
    assert "A report key of" in created.err
    assert created.out.startswith("ldp-")
    assert created.out.count("\n") == 1
    assert key("create").out != created.out
    listed = key("list --json").json["keys"]
    assert {(k["scope"], k["revoked"]) for k in listed} == {("report", None), ("admin", None)}
    assert {k["name"] for k in listed} > {"users"}
    assert all(k["created"] for k in listed)
    shown = key("list").out
    assert "users" in shown
    assert created.out.strip() not in shown


def test_revokes_a_key_once(key: Run) -> None:
    key("create users")
    key("revoke users").succeeds()
    (listed,) = key("list --json").json["keys"]
    assert listed["revoked"] is not None
    error = key("revoke users").fails(1)
    assert error == "no key has this name, or it is revoked"  # which may be a key by mistake


def test_log_has_the_keys_made_and_revoked(key: Run, run: Run) -> None:
    key("create users --scope report")
    key("create users").fails(1)
    key("revoke users")
    acts = run(f"admin log --json --database-url {DATABASE}").json["acts"]
    assert [(act["act"], act["subject"], act["key"]) for act in acts] == [
        ("revoke key", "users", None),
        ("create report key", "users", None),
    ]
    shown = run(f"admin log --database-url {DATABASE}").out
    assert "create report key" in shown


def test_writes_a_key_to_a_new_private_file(key: Run) -> None:
    file = Path("secret.key")
    assert key("create users --output secret.key").succeeds().out == ""
    text = file.read_text()
    assert text.startswith("ldp-")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key("create --output secret.key").code != 0
    assert file.read_text() == text
    assert key("create users --output other.key").code == 1  # the name is taken
    assert not Path("other.key").exists()
    assert len(key("list --json").json["keys"]) == 1


@pytest.mark.parametrize(
    "line", ["admin key create --output secret.key", "admin key list", "file reports x --output x"]
)
@pytest.mark.parametrize("empty", [False, True])
def test_creates_no_database_and_no_file(run: Run, tmp_path: Path, line: str, empty: bool) -> None:
    if empty:
        (tmp_path / "ldprecover.db").touch()
    before = sorted(tmp_path.rglob("*"))
    error = run(line).fails(2)
    assert error.startswith(f"there is no database {tmp_path / 'ldprecover.db'}: ")
    assert "name its database with --database-url or LDPRECOVER_DATABASE_URL; " in error
    assert "`ldprecover serve` makes a new one" in error
    assert sorted(tmp_path.rglob("*")) == before
    assert not empty or (tmp_path / "ldprecover.db").stat().st_size == 0


@pytest.mark.parametrize("line", ["Users", "--scope root"])
def test_rejects_invalid_names_and_scopes(key: Run, line: str) -> None:
    assert key(f"create {line}").code == 2
    assert key("list --json").json == {"keys": []}

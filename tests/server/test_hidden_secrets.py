"""Secrets in messages and in the environment of child processes."""

import os
import subprocess
import sys
from itertools import product

import pytest

from ldprecover_server.secrets import hidden_variables, without_secrets

PG = "postgresql+psycopg://"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"{PG}app:p@ssword@host/db", f"{PG}***@host/db"),
        (f"{PG}app:p%40ss@host:5432/db", f"{PG}***@host:5432/db"),
        (f"{PG}app:abc/def==@host/db", f"{PG}***@host/db"),
        (f"{PG}a:1@h1:1,b:2@h2:2/db", f"{PG}***@h2:2/db"),
        (f"{PG}u:p@h1:1,h2:2/db", f"{PG}***@h1:1,h2:2/db"),
        (f"{PG}@[::1]:5432/db?host=x&password=y", f"{PG}***@[::1]:5432/db?***"),
        ("//user:pw@host/a%20b", "//***@host/a%20b"),
        ("user:pw@host", "***@host"),
        ("https://token@ldp.example.org/base#key", "https://***@ldp.example.org/base#***"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("ldp.example.org:8000", "ldp.example.org:8000"),
        ("sqlite:////home/a b/é@c=1;#.db?key=1", "sqlite:////home/a b/é@c=1;#.db?***"),
        ("reports/drinks", "reports/drinks"),
        ("", ""),
    ],
)
def test_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


ODD_URLS = [
    *(
        f"{start}app:{password}@{place}"
        for start, password, place in product(
            (PG, "//", "", "postgresql:/", "postgresql:///", "http:\\\\", " http://"),
            ("Mark", "x@Mark", "1/Mark", "x?Mark", "1#Mark", "Mark:Mark", "a;b=Mark", "[Mark]"),
            ("host/db", "", "h?a=b"),
        )
    ),
    f"{PG}app:Mark/db",
    f"{PG}app:Mark",
    f"{PG}app:123456Mark",
    f"{PG}app:12345-Mark",
    f"{PG}app%3AMark%40host/db",
    f"{PG}/app%3AMark%40host/db",
    f"{PG}/app:Mark",
    f"{PG}host/db?password=a@Mark",
    f"{PG}host/db?sslpassword=Mark&x#Mark",
    f"{PG}host/db%3Fpassword%3DMark",
    f"{PG}host/db;password=a@Mark",
    f"{PG}host:1/db&password=a@Mark",
    f"{PG}host/db password=a@Mark",
    f"{PG}app:[::Mark]",
    f"{PG}app:x@host/db\nMark",
    "host=h password=Mark",
    "host=h password='a b@Mark' dbname=db",
    "jdbc:postgresql://h/db?user=u&password=Mark",
]


def test_no_part_of_an_odd_url_that_may_be_secret_is_shown() -> None:
    assert [url for url in ODD_URLS if "Mark" in without_secrets(url)] == []


def test_child_process_does_not_inherit_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LDPRECOVER_ADMIN_KEY", "ldprecover_database_url", "PGPASSWORD"):
        monkeypatch.setenv(name, "Mark")
    before = dict(os.environ)
    program = [sys.executable, "-c", "import os; print(os.environ)"]
    with hidden_variables() as hidden:
        assert [*hidden.values()] == 3 * ["Mark"]
        shown = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert "PATH" in shown
    assert "Mark" not in shown
    assert dict(os.environ) == before

"""The command `class`."""

import contextlib
import re
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_nothing_remains

from ldprecover.planning import accuracy


def test_ctrl_c_leaves_only_the_named_file(
    watched: Callable[..., Any], temporary: Path, tmp_path: Path
) -> None:
    database = tmp_path / "class.db"
    url = "http://127.0.0.1:[0-9]+/"
    for options in ("", f"--keep {database}"):
        process = watched(f"class --port 0 --host 127.0.0.1 {options}", terminal=False)
        assert process.watch(until="Ctrl-C\n")
        assert str(accuracy(5, 4.0, 30)) in process.shown
        assert re.search(rf"Students: {url}.*\nTeacher: {url}#/rounds/class\?class=", process.shown)
        process.shown = ""
        process.process.send_signal(signal.SIGINT)
        assert process.ended() == (0, "")
        last = "Nothing was kept."
        if options:
            last = (
                f"The round is in {database}.\n"
                f"To look at it: ldprecover serve --database-url sqlite:///{database}"
            )
        assert process.shown == f"Stopped.\n{last}\n"
        assert_nothing_remains(temporary)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["class.db"]
    with contextlib.closing(sqlite3.connect(database)) as connection:
        rounds = connection.execute("SELECT name, state FROM rounds").fetchall()
    assert rounds == [("class", "closed")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("class --question Which?", "give a file of answers and --question, or neither"),
        ("class --host school", "--host must be an IPv4 address, not 'school'"),
        ("class --host 0.0.0.0", "--host must be one address: phones are shown it"),
        (
            "class --keep old.db",
            "cannot write old.db: a file of this name exists; delete it, or give another name",
        ),
        ("class --keep no/x.db", "cannot write no/x.db: there is no folder no"),
        ("class none.txt", "there is no file none.txt"),
        ("class one.txt --question Which?", "give at least two items, not 1"),
        ("survey one.txt --question Which?", "items must be at least two, not 1"),
        ("round open x --epsilon 1 --item tea", "give at least two items, not 1"),
        ("class two.txt --question ''", "--question must be a text of 1 to 300 characters"),
    ],
)
def test_rejects_what_cannot_be_served(run: Run, line: str, message: str) -> None:
    Path("old.db").touch()
    Path("one.txt").write_text("tea\n")
    Path("two.txt").write_text("tea\ncoffee\n")
    assert run(line).fails(2) == message


def test_taken_port_is_named(run: Run, nowhere: str) -> None:
    port = nowhere.rpartition(":")[2]
    result = run(f"class --host 127.0.0.1 --port {port}")
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in result.err

"""Groups, the round that a command reads, and former names."""

from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import StartServer
from typer.main import get_command

from ldprecover.protocols.wire import pack
from ldprecover_cli import app
from ldprecover_cli.grammar import FORMER_NAMES

ROOT: Any = get_command(app.app)


@pytest.fixture
def two_rounds(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with the closed rounds `first` and `second` of 100 reports each."""
    server = start_server()
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", server.admin_key)
    for name in ("first", "second"):
        opened = server.open_round("grr", 1.0, items=["a", "b", "c"], name=name)
        assert server.submit(opened["id"], pack(np.arange(100, dtype="<u4") % 3)).is_success
        assert server.close_round(opened["id"]).is_success


def test_every_reader_takes_the_round_in_three_ways(run: Run, two_rounds: None) -> None:
    for command, options in (
        ("result alarms", ""),
        ("result certify", "--malicious-share 0.01"),
        ("result frequencies", ""),
        ("result methods", ""),
        ("result recover", ""),
        ("round show", ""),
    ):
        named = run(f"{command} first {options}").succeeds().out
        assert "first" in named
        assert "(the current one)" not in named
        assert run(f"{command} {options} --round first").succeeds().out == named
        assert "second (the current one)" in run(f"{command} {options}").succeeds().out, command


def test_answers_on_standard_error_name_the_round(run: Run, two_rounds: None) -> None:
    exported = run("round export --output second.json").succeeds().err
    assert exported.startswith("100 reports of second (the current one) are in second.json")
    again = run("round export --output second.json").fails(2)
    assert again == "cannot write second.json: it exists; delete it, or name another file"
    assert "name the round" in run("round close").fails(2)
    assert "name the round" in run("round delete --yes").fails(2)
    assert (
        run("round close current").out == "second (the current one) is closed, with 100 reports.\n"
    )


def test_empty_round_is_not_the_current_one(run: Run, two_rounds: None) -> None:
    for line in ("result frequencies ''", "result frequencies --round ''"):
        assert "(the current one)" not in run(line).out


@pytest.mark.parametrize(("former", "path"), FORMER_NAMES.items())
def test_former_name_is_the_command_and_is_hidden(run: Run, former: str, path: str) -> None:
    command = ROOT
    for word in path.split():
        command = command.commands[word]
    assert f"Usage: ldprecover {path} " in run(f"{former} --help").succeeds().words
    assert former.split()[0] not in ROOT.commands


def test_former_name_passes_its_arguments(run: Run, two_rounds: None) -> None:
    line = "frequencies --round first --top 1 --json"
    assert run(line).json == run(f"result {line}").json


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("send my own answer to a survey", "send value"),
        ("see whether a round was attacked", "result alarms"),
        ("get the corrected frequencies", "result recover"),
        ("simulate an attack", "sim attack"),
        ("make an access key", "admin key"),
        ("add up the results of two servers", "file recompute"),
        ("rerun the paper", "study paper"),
    ],
)
def test_help_names_the_command_of_a_task(run: Run, task: str, path: str) -> None:
    """Whether people find it in ten seconds is for people to say."""
    group, command = path.split()
    lines = run("--help").out.splitlines()
    row = next(i for i, line in enumerate(lines) if line.startswith(f"│ {group} "))
    assert command in lines[row + 1].replace(",", " ").split(), task

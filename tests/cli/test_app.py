"""Help, version, usage errors and unexpected errors of the whole command line."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess
from tests.forked import start_python
from typer.main import get_command

from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_attacker import ATTACKS
from ldprecover_cli import app
from ldprecover_cli.sim import users
from ldprecover_client.ledger import MAX_TOTAL_EPSILON
from ldprecover_client.reporter import MAX_EPSILON

PROGRAM = Path(sys.executable).with_name("ldprecover")
MODULE = [sys.executable, "-m", "ldprecover_cli"]


def _paths(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", {}).items()
    return [path, *(each for name, sub in below for each in _paths(sub, (*path, name)))]


ROOT: Any = get_command(app.app)
COMMANDS = _paths(ROOT)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_an_example_and_fits_80_columns(
    run: Run, path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run("", *path, "--help").succeeds()
    assert result.err == ""
    before, example, _ = result.words.partition("Example: ldprecover ")
    assert example
    assert "." in before
    assert "bool" not in result.out, "an option without value shows a type"
    assert "\x1b" not in result.out
    lines = result.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if "…" in line and '"1", …' not in line], "a line is cut off"


def test_every_example_in_the_help_parses() -> None:
    examples = 0
    for path in COMMANDS:
        command = ROOT
        for name in path:
            command = command.commands[name]
        for line in re.findall(r"^ *Example: ldprecover (.*)", command.help or "", re.MULTILINE):
            words, names = shlex.split(line), []
            group = ROOT
            while hasattr(group, "commands"):
                names.append(words.pop(0))
                group = group.commands[names[-1]]
            if names == ["serve"]:
                group = app._serve_command()
            group.make_context("ldprecover", words)
            examples += 1
    assert examples >= len(COMMANDS)


def test_help_lists_all_commands_in_order_under_headings(run: Run) -> None:
    shown = re.findall(r"^│ (\w+) ", run("--help").out, re.MULTILINE)
    assert shown == list(ROOT.commands)


def test_help_of_report_states_the_limits_that_hold(run: Run) -> None:
    text = " ".join(run("send value --help").out.replace("│", " ").split())
    assert f"accept; {MAX_EPSILON:g} when absent" in text
    assert f"together; {MAX_TOTAL_EPSILON:g} when absent" in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rond list", "No such command 'rond'. Did you mean 'round'? (try `ldprecover --help`)"),
        ("sim user", "No such command 'user'. Did you mean 'users'? (try `ldprecover sim --help`)"),
        ("send value -0.25 moods", "write -- before a negative number, as in"),
        ("result frequencies --bottom 3", "--bottom"),
        ("round list --url localhost:8000", "http://"),
        ("--nonsense", "--nonsense"),
        ("demo --users 1000000000000", "users must be at most"),
    ],
)
def test_usage_error_is_one_line(run: Run, line: str, message: str) -> None:
    error = run(line).fails(2)
    assert message in error
    assert "\x1b" not in error


def test_unexpected_error_is_one_line_and_debug_shows_where(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(users, "sending", fail)
    assert run("sim users --users 3").fails(1).startswith("ZeroDivisionError: two lines")
    debugged = run("--debug sim users --users 3")
    assert debugged.code == 1
    assert "Traceback" in debugged.err
    assert "in users" in debugged.err
    assert debugged.err.splitlines()[-1].startswith("error: ZeroDivisionError")


def test_help_loads_neither_server_nor_numpy() -> None:
    code = (
        "import sys; from ldprecover_cli.app import run; code = run(['--help']); "
        "print(sorted({'numpy', 'fastapi', 'sqlalchemy', 'httpx'} & set(sys.modules)), "
        "file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_program_and_module_print_the_same_without_unicode() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    program, module = (
        subprocess.run([*command, "--help"], capture_output=True, check=True, env=environment)
        for command in ([PROGRAM], MODULE)
    )
    assert b"Example: ldprecover demo" in program.stdout
    assert (program.stdout, program.stderr) == (module.stdout, b"")


def test_prints_the_version_of_the_package(run: Run) -> None:
    assert run("--version").out == f"ldprecover {version('ldprecover')}\n"


@pytest.mark.parametrize("line", ["--help", "round list"])
def test_ends_silently_if_nobody_reads(server: ServerProcess, line: str) -> None:
    """As before `| head`: the reader ends before the first line."""
    read, write = os.pipe()
    os.close(read)
    environment = os.environ | {"LDPRECOVER_URL": server.url}
    done = subprocess.run(
        [*MODULE, *line.split()], stdout=write, stderr=subprocess.PIPE, env=environment, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file of Linux")
def test_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*MODULE, "-h"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"error: No space left on device\n")


def test_prints_on_a_terminal_without_a_size(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert "Usage: ldprecover plan" in run("plan --help").out


def test_runs_with_closed_streams(server: ServerProcess) -> None:
    command = f"{shlex.join(MODULE)} round list --url {server.url} >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0


def test_a_shell_completes_commands(forking: None) -> None:
    environment = _completion_request("ldprecover result fr")
    done = subprocess.run(
        ["ldprecover"], executable=PROGRAM, capture_output=True, env=environment, check=True
    )
    assert (done.stdout.split(), done.stderr) == ([b"frequencies"], b"")


def test_a_shell_completes_options_and_values(
    server: ServerProcess, nowhere: str, tmp_path: Path
) -> None:
    name = server.open_round(items=["a", "b"])["name"]
    (tmp_path / "fires.csv").touch()
    assert _completed("round open --acc") == ["--access"]
    assert set(_completed("round open --protocol ")) == {*PROTOCOLS}
    assert set(_completed("result recover --method ")) == set(METHODS)
    assert set(_completed("sim attack ")) >= set(ATTACKS)
    assert _completed("sim users --dataset fi") == ["fire", "fires.csv"]
    for words in ("result recover ", "round show "):
        assert {"current", name} <= set(_completed(words, server.url))
    assert _completed("result recover ", nowhere) == ["current"]


def _completed(words: str, url: str = "") -> list[str]:
    """Return the words that a shell offers for the last word."""
    environment = _completion_request(f"ldprecover {words}") | {"LDPRECOVER_URL": url}
    process = start_python("-m", "ldprecover_cli", folder=Path.cwd(), environment=environment)
    out, err = process.communicate()
    assert (process.wait(), err) == (0, "")
    return out.split()


def _completion_request(words: str) -> dict[str, str]:
    """Return the environment in which the script of a shell asks for words."""
    return os.environ | {
        "_LDPRECOVER_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "admin key create --scope foo",
            "'--scope': 'foo' is not one of 'admin', 'analyst', 'report'.",
        ),
        ("result recover --top 0", "'--top': must be greater than or equal to 1, not '0'"),
    ],
)
def test_an_invalid_option_is_named_with_its_value(run: Run, line: str, message: str) -> None:
    error = run(line).fails(2)
    command = line.partition(" --")[0].removesuffix(" mga")
    assert error == f"Invalid value for {message} (try `ldprecover {command} --help`)"


_INTERRUPTED = """
import signal, sys
class Wrapping:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            type("Owner", (), {{"attribute": Wrapping()}})
sys.meta_path.insert(0, Interrupting())
from ldprecover_cli import main
sys.argv = ["ldprecover", "round", "list", "--url", "http://127.0.0.1:9"]
main()
"""
"""Sends Ctrl-C while a class is made in an import, where Python 3.11 wraps KeyboardInterrupt."""


@pytest.mark.parametrize("module", ["ldprecover_cli.app", "httpx"])
def test_ctrl_c_during_an_import_is_one_line(module: str) -> None:
    """In a new interpreter: a forked one has imported the modules."""
    code = _INTERRUPTED.format(module=module)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "Interrupted.\n")

"""Help, version, usage errors, and what becomes of an error nobody foresaw."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.forked import start_python
from typer.main import get_command

from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS
from ldprecover_attacker import ATTACKS, MODELS
from ldprecover_cli import app, completion, options, simulate
from ldprecover_client.ledger import MAX_TOTAL_EPSILON
from ldprecover_client.reporter import MAX_EPSILON


def _paths(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", {})
    return [path, *(found for name, sub in below.items() for found in _paths(sub, (*path, name)))]


COMMANDS = _paths(get_command(app.app))


def test_there_are_the_commands_there_should_be() -> None:
    single = {"attack", "demo", "frequencies", "recover", "report", "serve", "simulate"}
    groups = {("round", name) for name in ("open", "list", "show", "close", "delete")} | {
        ("key", "create")
    }
    assert {(name,) for name in single} | groups <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_of_every_command_says_what_it_does_and_gives_an_example(
    run: Any, path: tuple[str, ...]
) -> None:
    result = run(*path, "--help")
    assert (result.code, result.err) == (0, "")
    text = " ".join(result.out.split())
    assert "Example: ldprecover " in text
    before = text.partition("Example: ")[0]
    assert before.count(". ") + before.count(".") >= 1


def test_every_example_in_the_help_is_a_command_line_that_parses() -> None:
    """Each is parsed as it stands, options and all, and not run."""
    examples = 0
    for path in COMMANDS:
        command: Any = get_command(app.app)
        for name in path:
            command = command.commands[name]
        for line in (command.help or "").splitlines():
            if line.strip().startswith("Example: ldprecover "):
                words = shlex.split(line.strip().removeprefix("Example: ldprecover "))
                group, names = get_command(app.app), []
                while hasattr(group, "commands"):
                    names.append(words.pop(0))
                    group = group.commands[names[-1]]
                if names == ["serve"]:
                    group = app._serve_command()
                group.make_context("ldprecover", words)
                examples += 1
    assert examples >= len(COMMANDS)


def test_version_is_the_package_s(run: Any) -> None:
    assert run("--version").out == f"ldprecover {version('ldprecover')}\n"


def test_a_command_that_is_none_names_one_that_is_like_it(run: Any) -> None:
    result = run("simulat", "--users", "3")
    assert result.code == 2
    assert "'simulate'" in result.error


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate",),
        ("simulate", "--users", "many"),
        ("report",),
        ("frequencies", "--bottom", "3"),
        ("attack", "bribe"),
    ],
    ids=" ".join,
)
def test_a_wrong_option_is_one_line_with_exit_code_2(run: Any, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert result.error


def test_an_option_before_the_command_is_told_where_it_belongs(run: Any) -> None:
    assert (
        "a command's options follow it, as in `ldprecover COMMAND --users …`"
        in run("--users", "3", "simulate").error
    )
    assert "options follow it" not in run("--nonsense").error


def test_an_unforeseen_error_is_one_line_and_debug_shows_where(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(simulate, "sending", fail)
    result = run("simulate", "--users", "3")
    assert result.code == 1
    assert result.error.startswith("ZeroDivisionError: two lines")
    debugged = run("--debug", "simulate", "--users", "3")
    assert debugged.code == 1
    assert "Traceback" in debugged.err
    assert "in simulate" in debugged.err
    assert debugged.err.splitlines()[-1].startswith("error: ZeroDivisionError")


def test_options_that_name_choices_name_all_there_are() -> None:
    assert completion.attacks() == sorted(ATTACKS)
    assert set(get_args(options.Model)) == set(MODELS)


def test_help_of_report_states_the_limits_that_hold(run: Any) -> None:
    text = " ".join(run("report", "--help").out.replace("│", " ").split())
    assert f"accept; {MAX_EPSILON:g} when absent" in text
    assert f"together; {MAX_TOTAL_EPSILON:g} when absent" in text


def test_it_runs_as_a_module_and_help_loads_neither_server_nor_numpy() -> None:
    """What only some commands need must not make every command slow."""
    code = (
        "import sys; from ldprecover_cli.app import run; code = run(['--help']); "
        "print(sorted({'numpy', 'fastapi', 'sqlalchemy', 'httpx'} & set(sys.modules)), "
        "file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    module = subprocess.run(
        [sys.executable, "-m", "ldprecover_cli", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert module.stdout == f"ldprecover {version('ldprecover')}\n"


def test_a_terminal_without_unicode_is_no_reason_to_fail() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ldprecover_cli", "--help"],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert b"Example: ldprecover demo" in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize(
    "arguments", [("--help",), ("round", "list"), ("round", "list", "--json")], ids=" ".join
)
def test_what_nobody_reads_ends_without_a_word(server: Any, arguments: tuple[str, ...]) -> None:
    """As before `| head`: whoever read is gone before the first line."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "ldprecover_cli", *arguments],
        stdout=write,
        stderr=subprocess.PIPE,
        env=os.environ | {"LDPRECOVER_URL": server.url},
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def test_closed_streams_are_no_reason_to_fail(server: Any, nowhere: str) -> None:
    command = f"{sys.executable} -m ldprecover_cli round list --url"
    closed = subprocess.run(["sh", "-c", f"{command} {server.url} >&- 2>&-"], check=False)
    assert closed.returncode == 0
    refused = subprocess.run(
        ["sh", "-c", f"{command} {nowhere} 2>&-"], capture_output=True, check=False
    )
    assert (refused.returncode, refused.stdout) == (1, b"")


def test_a_shell_completes_commands_and_options(forking: None) -> None:
    """What the script of `--show-completion` asks for, and its answers."""
    program = Path(sys.executable).with_name("ldprecover")
    done = subprocess.run(
        ["ldprecover"],
        executable=program,
        capture_output=True,
        env=_asked("ldprecover fr"),
        check=True,
    )
    assert (done.stdout.split(), done.stderr) == ([b"frequencies"], b"")
    assert _completed("ldprecover round open --acc") == ["--access"]


def test_a_shell_completes_values(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Protocols, methods and attacks are those of the registries; rounds are the server's, files
    the folder's.
    """
    name = server.open_round(items=["a", "b"])["name"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fires.csv").touch()
    assert set(_completed("ldprecover round open --protocol ")) == {*PROTOCOLS, "auto"}
    assert set(_completed("ldprecover recover --method ")) == set(METHODS)
    assert set(_completed("ldprecover attack ")) >= set(ATTACKS)
    assert _completed("ldprecover simulate --dataset fi") == ["fire", "fires.csv"]
    for words in ("ldprecover recover --round ", "ldprecover round show "):
        assert {"current", name} <= set(_completed(words, LDPRECOVER_URL=server.url))


def test_without_a_server_the_current_round_is_what_a_shell_completes(
    forking: None, nowhere: str
) -> None:
    assert _completed("ldprecover recover --round ", LDPRECOVER_URL=nowhere) == ["current"]


def _completed(words: str, **environment: str) -> list[str]:
    """Return what a shell offers for the last word."""
    process = start_python(
        "-m", "ldprecover_cli", folder=Path.cwd(), environment=_asked(words) | environment
    )
    out, err = process.communicate()
    assert (process.wait(), err) == (0, "")
    return out.split()


def _asked(words: str) -> dict[str, str]:
    """Return the environment in which a shell asks."""
    asked = {
        "_LDPRECOVER_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    return os.environ | asked


def test_every_command_has_its_heading(run: Any) -> None:
    shown = {
        name: index
        for index, name in enumerate(re.findall(r"^│ (\w+) ", run("--help").out, re.MULTILINE))
    }
    assert list(shown) == [app._name(each) for panel in app._PANELS.values() for each in panel]
    assert set(shown) == {path[0] for path in COMMANDS if path}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_states_no_type_of_what_takes_no_value(run: Any, path: tuple[str, ...]) -> None:
    assert "bool" not in run(*path, "--help").out


def test_the_program_and_the_module_are_one() -> None:
    program = subprocess.run(
        [Path(sys.executable).with_name("ldprecover"), "--help"], capture_output=True, check=True
    )
    module = subprocess.run(
        [sys.executable, "-m", "ldprecover_cli", "--help"], capture_output=True, check=True
    )
    assert program.stdout == module.stdout


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_a_terminal_of_80_columns(
    run: Any, path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(*path, "--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [
        line for line in lines if "…" in line and '"1", …' not in line
    ]  # nothing is cut off


def test_no_colour_codes_and_no_endless_lines_when_not_a_terminal(run: Any) -> None:
    result = run("--help")
    assert "\x1b" not in result.out
    assert "\x1b" not in run("simulat").err

"""`audit`: clients in separate processes, and what goes wrong with them."""

import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from ldprecover_cli.audit import client

BANNER = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    print(line, end="", flush=True)
"""
GRR = """
import math, random, sys
for line in sys.stdin:
    value = line.rstrip("\\n")
    kept = random.random() < math.e / (math.e + 1)
    print(value if kept else "ab".replace(value, ""), flush=True)
"""
MEMORY = """
import random
print("what a module prints is no report")
answers = {}
def report(value):
    return answers.setdefault(value, random.random())
def fails(value):
    if value == "b":
        raise ValueError("unknown item")
    return value, lambda: None
def always_fails(value):
    raise RuntimeError(random.random())
def ends(value):
    raise SystemExit(3)
"""


def python(code: str) -> str:
    return f"-- {sys.executable} -c '{code}'"


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current folder with a module of functions."""
    (tmp_path / "mine.py").write_text(MEMORY)
    monkeypatch.chdir(tmp_path)


def test_sound_command_is_no_violation(run: Run) -> None:
    done = run(f"audit --epsilon 1 --value a --value b --calls 2000 {python(GRR)}").succeeds()
    assert done.words.startswith("No violation found. The evidence reaches 0.")
    assert done.err == "A sound client by GRR would show about 0.57 of 1.\n"


def test_violation_exits_with_1_and_the_evidence(run: Run) -> None:
    done = run("audit --epsilon 1 --value a --value b --calls 1000 -- cat")
    assert done.code == 1
    verdict, evidence, assumed = done.out.splitlines()
    assert verdict.startswith("Not 1-LDP: at least 3.")
    assert "in 400 of 400 reports of 'a', in 0 of 400 reports of 'b'." in evidence
    assert assumed == "Calls are assumed to be independent."


def test_json_is_one_object(run: Run) -> None:
    done = run("audit --epsilon 1 --value a --value b --calls 1000 --json -- cat")
    assert {"audited": True, "violation": True, "claimed": 1, "calls": 1000}.items() <= (
        done.json.items()
    )
    assert done.json["counts"] == [[400, 400], [0, 400]]
    assert {"at_least", "error", "evidence", "event"} <= {*done.json}


@pytest.mark.usefixtures("in_folder")
def test_function_with_a_memory_needs_fresh_starts(run: Run) -> None:
    call = "audit --epsilon 3 --value a --value b --calls 1000"
    assert "remembers between calls" in run(f"{call} mine:report").out
    assert run(f"{call} --fresh mine:report").succeeds().out.startswith("No violation")


@pytest.mark.usefixtures("in_folder")
def test_exceptions_and_what_has_no_pickle_are_reports(run: Run) -> None:
    done = run("audit --epsilon 1 --value a --value b --calls 1000 --json mine:fails")
    assert done.json["violation"]


def test_reset_line_takes_the_place_of_a_start(run: Run) -> None:
    code = (
        'import random, sys\nanswer = ""\nfor line in sys.stdin:\n    value = line.strip()\n'
        '    if value == "forget": answer = ""; continue\n'
        '    answer = answer or random.choice("ab"); print(answer, flush=True)'
    )
    call = "audit --epsilon 1 --reports 2 --value a --value b --calls 100 --reset forget"
    assert run(f"{call} {python(code)}").succeeds().out.startswith("No violation")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("-- no-such-client", "no-such-client cannot be started: No such file or directory."),
        ("-- false", "The command ended with exit code 1."),
        ("-- printf half", "The command ended with exit code 0 in the middle of the line b'half'."),
        (python("import sys; sys.exit(sys.stdin.readline())"), "ended with exit code 1: "),
        (python('print("x" * 2000000)'), "A report is longer than 1 MiB."),
        ("-- yes", "The command writes more than a line for each value: b'y"),
        (python(BANNER), "The command writes more than a line for each value"),
        (
            python("import sys\nfor v in sys.stdin: print(1, flush=True)"),
            "All reports are the same.",
        ),
        ("--protocol grr -- cat", "not a report of grr: '"),
        ("mine:always_fails", "Every call failed: RuntimeError: 0."),
        ("no_such_module:report", "No module named 'no_such_module'"),
        ("mine:ends", "The command ended with exit code 3: what a module prints is no report"),
    ],
)
@pytest.mark.usefixtures("in_folder")
def test_what_could_not_be_audited_exits_with_3(run: Run, command: str, reason: str) -> None:
    done = run(f"audit --epsilon 1 --value a --value b --calls 100 {command}")
    assert done.code == 3
    assert done.out.startswith("Nothing was audited.\n")
    assert reason in done.out


@pytest.mark.usefixtures("in_folder")
def test_error_that_nobody_expects_is_no_violation(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TemporaryFile", lambda: (_ for _ in ()).throw(OSError(28, "full")))
    done = run("audit --epsilon 1 --value a --value b --calls 100 -- cat")
    assert (done.code, "full" in done.out) == (3, True)


@pytest.mark.usefixtures("in_folder")
def test_reset_is_of_a_command(run: Run) -> None:
    error = run("audit --epsilon 1 --value a --value b --reset forget mine:report").fails(2)
    assert error.startswith("--reset is for a command")


def test_silent_command_is_told_to_flush(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_HINT", 0.01)
    monkeypatch.setattr(client, "_PATIENCE", 0.02)
    done = run("audit --epsilon 1 --value a --value b -- sleep 60")
    assert (done.code, "does the command flush its output" in done.err) == (3, True)
    assert "No line in 0.02 s." in done.out


def test_errors_of_the_client_are_shown(run: Run) -> None:
    code = (
        'import sys\nfor line in sys.stdin:\n    print(line, end="", flush=True)\n'
        '    print("odd", file=sys.stderr)'
    )
    done = run(f"audit --epsilon 1 --value a --value b --calls 100 {python(code)}")
    assert "The client wrote on standard error, at last: odd" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--value a", "values must be two or more, and different"),
        ("--value a --value 'b\nc'", "a value must not contain a line end"),
        ("--value a --value b --epsilon nan", "--epsilon must be a number above 0"),
        ("--value a --value b --error 0", "--error must be a number above 0"),
        ("--history a*x --value b", "--history takes values as a*26,b*26, not 'a*x'"),
        ("--history a*99999 --value b", "--history takes values as a*26,b*26, not 'a*99999'"),
        ("--value a --value b --calls 10", "--calls must be an integer from 20"),
    ],
)
def test_wrong_arguments_exit_with_2(run: Run, options: str, message: str) -> None:
    done = run(f"audit --epsilon 1 {options} -- cat")
    assert done.code == 2
    assert message in done.err

"""Plugins that fail when they work: each failure has its plugin's name, and nothing else fails with
it.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import ADMIN_KEY, ServerProcess, StartServer
from tests.plugins.conftest import Run, python_path

COMMAND = ("-m", "ldprecover_cli")
METHODS = ("nan", "raises", "leaves", "exits", "kills", "short")
MODULE = '''
import os
import signal
import sys
from dataclasses import dataclass, replace

import numpy as np

from ldprecover import OUE
from ldprecover.recovery import METHODS, Method
from ldprecover_attacker import Attack, Plan


@dataclass(frozen=True)
class Odd(OUE):
    protocol = "odd"

    def perturb(self, items, rng=None):
        raise KeyError("odd boom")


def method(name, change):
    def recover(inputs):
        recovery = METHODS["norm-sub"].recover(inputs)
        return replace(recovery, method=name, recovered=change(inputs.poisoned))

    return Method(name, "fails", uses=frozenset(), recover=recover)


def boom(f):
    raise ValueError("boom")


NAN = method("nan", lambda f: f * np.nan)
RAISES = method("raises", boom)
LEAVES = method("leaves", lambda f: sys.exit("I leave"))
EXITS = method("exits", lambda f: os._exit(3))
KILLS = method("kills", lambda f: os.kill(os.getpid(), signal.SIGKILL))
SHORT = method("short", lambda f: f[:1])


@dataclass(frozen=True)
class Shape(Attack):
    """Sends what is no report."""

    name = "shape"
    resolve = lambda self, items: self

    def plan(self, oracle, rng):
        return Plan(send=lambda m, rng: np.zeros((m, 3)), support=lambda m: np.ones(1))


@dataclass(frozen=True)
class Boom(Shape):
    """Raises."""

    name = "boom"

    def plan(self, oracle, rng):
        raise RuntimeError("plan boom")
'''

Entries = Callable[[dict[str, str], str], Path]


@pytest.fixture
def entries(tmp_path: Path) -> Entries:
    """Install a module `others` with these groups of entry points, and return the folder."""

    def write(groups: dict[str, str], module: str) -> Path:
        site = tmp_path / "site"
        information = site / "others-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
        text = "".join(f"[ldprecover.{group}]\n{lines}\n" for group, lines in groups.items())
        (information / "entry_points.txt").write_text(text)
        (site / "others.py").write_text(module)
        return site

    return write


@pytest.fixture
def failing(entries: Entries) -> Path:
    """The folder of plugins that load and fail later."""
    methods = "\n".join(f"{name} = others:{name.upper()}" for name in METHODS)
    attacks = "shape = others:Shape\nboom = others:Boom"
    return entries(
        {"protocols": "odd = others:Odd", "methods": methods, "attacks": attacks}, MODULE
    )


@pytest.fixture
def server(
    start_server: StartServer, failing: Path, monkeypatch: pytest.MonkeyPatch
) -> ServerProcess:
    """A server that has the methods loaded."""
    monkeypatch.setenv("PYTHONPATH", python_path(failing))
    return start_server(plugins=",".join(METHODS))


def test_failing_method_is_a_problem_that_names_it(
    server: ServerProcess,
) -> None:
    place = f"/rounds/{server.open_round('grr', 1.0, domain_size=4)['id']}"
    assert (
        server.http.post(
            f"{place}/reports", json={"reports": [0, 1, 1]}, headers=server.admin
        ).status_code
        == 202
    )
    for name, words in {
        "nan": "returned what it may not: recovered must be a numpy array of 4 finite numbers",
        "short": "returned what it may not: recovered must be a numpy array of 4 finite numbers",
        "raises": "raised ValueError: boom",
        "leaves": "raised SystemExit: I leave",
        "exits": "its worker process has ended",
        "kills": "its worker process has ended",
    }.items():
        answer = server.http.post(f"{place}/recover", json={"method": name}, headers=server.admin)
        assert (answer.status_code, answer.json()["type"]) == (500, "/docs/errors#analysis-failed")
        assert answer.json()["detail"].startswith(f"the method '{name}' of the distribution others")
        assert words in answer.json()["detail"]
    assert server.http.post(f"{place}/recover", json={}, headers=server.admin).status_code == 200


def test_a_job_of_a_method_that_fails_has_its_name(server: ServerProcess) -> None:
    place = f"/rounds/{server.open_round('grr', 1.0, domain_size=4)['id']}"
    server.http.post(f"{place}/reports", json={"reports": [0, 1, 1]}, headers=server.admin)
    asked = {**server.admin, "Prefer": "respond-async"}
    job = server.http.post(f"{place}/recover", json={"method": "raises"}, headers=asked)
    assert job.status_code == 202
    found = job.json()
    while found["state"] in ("queued", "running"):
        found = server.http.get(job.headers["Location"], headers=server.admin).json()
    assert "the method 'raises' of the distribution others raised ValueError: boom" in json.dumps(
        found
    )


def test_an_attack_that_fails_is_named_and_nothing_is_sent(
    start_server: StartServer, failing: Path, run: Run
) -> None:
    server = start_server()
    opened = server.open_round("grr", 1.0, domain_size=4)
    for name, words in {
        "shape": "5 of them are an array of uint32 of shape (5,), not an array of float64 of "
        "shape (5, 3)",
        "boom": "raised RuntimeError: plan boom",
    }.items():
        options = ("--round", opened["id"], "--users", "5", "--url", server.url, "--key", ADMIN_KEY)
        said = run(*COMMAND, "attack", name, *options, sees=(failing,), code=1).stderr
        assert f"the attack '{name}' of the distribution others" in said
        assert words in said
        assert "--url" not in said
    assert server.http.get(f"/rounds/{opened['id']}").json()["n"] == 0


def test_unexpected_error_names_loaded_distributions(
    failing: Path, run: Run, tmp_path: Path
) -> None:
    study = (
        'data = "cities"\nprotocols = "odd"\nusers = 100\ntrials = 1\nattacks = '
        '["none"]\nmethods = ["diffstats"]\n'
    )
    (tmp_path / "study.toml").write_text(study)
    said = run(*COMMAND, "reproduce", "study.toml", "--jobs", "1", sees=(failing,), code=1).stderr
    fault = "a fault of ldprecover or of a plugin in others"
    assert f"KeyError: 'odd boom' ({fault}; `ldprecover --debug" in said


def test_a_method_that_fails_takes_no_other_from_a_study(
    failing: Path, run: Run, tmp_path: Path
) -> None:
    methods = '["norm-sub", "nan", "raises", "leaves"]'
    study = (
        'data = "cities"\nprotocols = "grr"\nusers = 500\ntrials = 2\nattacks = '
        f'["none"]\nmethods = {methods}\n'
    )
    (tmp_path / "study.toml").write_text(study)
    ended = run(
        *COMMAND, "reproduce", "study.toml", "--jobs", "2", "--out", "results", sees=(failing,)
    )
    with (tmp_path / "results" / "cells.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    refused = {row["method"]: row["refused"] for row in rows}
    assert not refused["norm-sub"]
    assert (
        refused["raises"]
        == "the method 'raises' of the distribution others raised ValueError: boom"
    )
    assert "recovered must be a numpy array of 102 finite numbers" in refused["nan"]
    assert "raised SystemExit: I leave" in refused["leaves"]
    assert all(float(row["mse"]) > 0 for row in rows if row["method"] == "norm-sub")
    assert (
        "raises: the method 'raises' of the distribution others raised ValueError: boom"
        in ended.stderr
    )


def test_a_worker_of_a_study_that_is_gone_is_said_in_words(
    failing: Path, run: Run, tmp_path: Path
) -> None:
    study = (
        'data = "cities"\nprotocols = "grr"\nusers = 500\ntrials = 2\nattacks = '
        '["none"]\nmethods = ["exits"]\n'
    )
    (tmp_path / "study.toml").write_text(study)
    said = run(*COMMAND, "reproduce", "study.toml", "--jobs", "2", sees=(failing,), code=1).stderr
    assert "a worker process has died" in said


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("raise SystemExit(7)", "cannot be imported: SystemExit: 7"),
        ("raise GeneratorExit", "cannot be imported: GeneratorExit"),
        ("import nothing_like_it", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_warns_of_plugin_that_cannot_be_imported(
    entries: Entries, run: Run, start_server: StartServer, module: str, words: str
) -> None:
    site = entries({"methods": "kind = others:METHOD"}, module)
    server = start_server()
    server.open_round("grr", 1.0, name="lunch")
    ended = run(*COMMAND, "round", "list", "--url", server.url, sees=(site,))
    assert "lunch" in ended.stdout
    assert (
        f"warning: the plugin 'kind' of ldprecover.methods in the distribution others {words}"
        in ended.stderr
    )


def test_a_plugin_that_stops_as_ctrl_c_does_is_named(entries: Entries, run: Run) -> None:
    site = entries({"methods": "kind = others:METHOD"}, "raise KeyboardInterrupt")
    said = run(*COMMAND, "round", "list", sees=(site,), code=130).stderr
    assert (
        "Interrupted. (the plugin 'kind' of ldprecover.methods in the distribution others cannot "
        "be imported)" in said
    )


@pytest.mark.parametrize(
    "command", [("key", "list"), ("migrate",), ("ledger", "--help"), ("key", "--help")]
)
def test_commands_that_need_no_plugin_load_none(
    entries: Entries, run: Run, command: tuple[str, ...], tmp_path: Path
) -> None:
    site = entries(
        {"methods": "kind = others:METHOD"}, "open('imported', 'w'); raise SystemExit(7)"
    )
    run(*COMMAND, "migrate", sees=(site,))
    run(*COMMAND, *command, sees=(site,))
    assert not (tmp_path / "imported").exists()


def test_a_shell_completes_what_there_is(entries: Entries, run: Run) -> None:
    site = entries({"methods": "kind = others:METHOD"}, "raise SystemExit(7)")
    code = (
        "from ldprecover_cli import completion; print(completion.methods(), completion.attacks())"
    )
    ended = run("-c", code, sees=(site,))
    assert "norm-sub" in ended.stdout
    assert not ended.stderr

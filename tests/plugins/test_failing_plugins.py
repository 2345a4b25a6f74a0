"""Plugins that fail when they run: each error names its plugin, and nothing else fails."""

import csv
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import ADMIN_KEY, PACKED, ServerProcess
from tests.plugins.conftest import Run, StartWithPlugins, write_plugins

COMMAND = ("-m", "ldprecover_cli")
METHODS = ("nan", "raises", "leaves", "exits", "kills", "short")
MODULE = '''
import os
import signal
import sys
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ldprecover import GRR, OUE
from ldprecover.protocols.wire import IntegerForm
from ldprecover.recovery import METHODS, Method
from ldprecover_attacker import Attack, Plan


@dataclass(frozen=True)
class Odd(OUE):
    protocol = "odd"

    def perturb(self, items, rng=None):
        raise KeyError("odd boom")


class Form(IntegerForm):
    def __init__(self, oracle):
        self.fail = oracle.fail
        super().__init__(GRR(1.0, 2).wire.forms, oracle.domain_size, "item")

    def check(self, reports):
        self.fail("check")

    def join(self, values):
        self.fail("join")
        wrong = int(self.fail.__self__.epsilon) == 5
        return super().join(values).astype(np.int64 if wrong else "<u4")


def loop():
    while True:
        pass


@dataclass(frozen=True)
class Steps(GRR):
    """Fails at one step, which epsilon chooses."""

    protocol = "steps"
    STEPS = ["check", "join", "summarise", "estimate", "", "counts_from", "", ""]

    def fail(self, step):
        if self.epsilon > 7.5 and step == self.STEPS[int(10 * self.epsilon) % 10]:
            sum(range(10**18)) if step == "check" else loop()  # the one with the interpreter's lock
        if self.STEPS[int(self.epsilon) - 1] == step:
            if self.epsilon == int(self.epsilon):
                raise KeyError("secret")
            raise SystemExit("secret")

    @cached_property
    def wire(self):
        return Form(self)

    def summarise(self, reports):
        self.fail("summarise")
        return super().summarise(reports)

    def counts_from(self, summary):
        self.fail("counts_from")
        return super().counts_from(summary)

    def estimate(self, counts, n):
        self.fail("estimate")
        return super().estimate(counts, n)


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


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of plugins that load and fail later."""
    methods = "\n".join(f"{name} = others:{name.upper()}" for name in METHODS)
    attacks = "shape = others:Shape\nboom = others:Boom"
    groups = {
        "protocols": "odd = others:Odd\nsteps = others:Steps",
        "methods": methods,
        "attacks": attacks,
    }
    return write_plugins(tmp_path_factory.mktemp("failing"), groups, MODULE)


@pytest.fixture(scope="module")
def with_methods(start_with_plugins: StartWithPlugins, failing: Path) -> ServerProcess:
    """A server that has the methods loaded."""
    return start_with_plugins(failing, ",".join([*METHODS, "steps"]))


@pytest.fixture
def place(with_methods: ServerProcess) -> str:
    """The path of a round with reports."""
    opened = with_methods.open_round("grr", 1.0, domain_size=4)
    assert with_methods.submit(opened["id"], bytes(12)).status_code == 202
    return f"/rounds/{opened['id']}"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The folder of a method whose module writes a file and exits when it is imported."""
    module = "open('imported', 'w'); raise SystemExit(7)"
    return write_plugins(tmp_path, {"methods": "kind = others:METHOD"}, module)


def test_failing_method_is_a_problem_that_names_it(with_methods: ServerProcess, place: str) -> None:
    http, admin = with_methods.http, with_methods.admin
    shape = "returned what it may not: recovered must be a numpy array of 4 finite numbers"
    for name, words in {
        "nan": shape,
        "short": shape,
        "raises": "raised ValueError: boom",
        "leaves": "raised SystemExit: I leave",
        "exits": "its worker process has ended",
        "kills": "its worker process has ended",
    }.items():
        answer = http.post(f"{place}/recover", json={"method": name}, headers=admin)
        assert (answer.status_code, answer.json()["type"]) == (500, "/docs/errors#analysis-failed")
        assert answer.json()["detail"].startswith(f"the method '{name}' of the distribution others")
        assert words in answer.json()["detail"]
    assert http.post(f"{place}/recover", json={}, headers=admin).status_code == 200


@pytest.mark.parametrize("kind", ["KeyError", "SystemExit"])
def test_failing_protocol_is_a_500_that_names_it(with_methods: ServerProcess, kind: str) -> None:
    http, admin = with_methods.http, with_methods.admin
    raised = f"the protocol 'steps' of the distribution others raised {kind} while it "
    named = "the protocol 'steps' of the distribution others"
    fraction = 0.0 if kind == "KeyError" else 0.5

    def fails(epsilon: int, method: str, path: str, words: str, **options: Any) -> None:
        opened = with_methods.open_round("steps", epsilon + fraction, domain_size=4)["id"]
        if path != "reports":
            assert with_methods.submit(opened, bytes(12)).status_code == 202
        headers = admin | (PACKED if "content" in options else {})
        answer = http.request(method, f"/rounds/{opened}/{path}", headers=headers, **options)
        assert (answer.status_code, words in answer.text) == (500, True), answer.text
        assert "secret" not in answer.text

    fails(1, "POST", "reports", raised + "read", content=bytes(4))
    fails(2, "POST", "reports", raised + "read", json={"reports": [1]})
    fails(3, "POST", "reports", raised + "counted", json={"reports": [1]})
    fails(4, "GET", "frequencies", named)
    fails(4, "POST", "recover", named, json={})
    fails(5, "POST", "reports", "read", json={"reports": [1]})
    fails(6, "GET", "frequencies?format=csv", named)
    fails(6, "GET", "alarms", named)
    healthy = with_methods.open_round("steps", 7, domain_size=4)["id"]
    assert http.post(f"/rounds/{healthy}/reports", json={"reports": [1]}).status_code == 202


@pytest.mark.parametrize(
    ("epsilon", "content", "words"),
    [
        (8.0, bytes(4), " in check"),  # in the event loop
        (8.0, bytes(1 << 19), " in check"),  # in a thread, which has the interpreter's lock
        (8.2, bytes(4), " in loop"),  # in the writer
    ],
)
def test_watchdog_ends_a_server_that_a_protocol_holds_in_a_loop(
    start_with_plugins: StartWithPlugins, failing: Path, epsilon: float, content: bytes, words: str
) -> None:
    server = start_with_plugins(failing, "steps", watchdog_seconds=0.5)
    opened = server.open_round("steps", epsilon, domain_size=4)["id"]
    with pytest.raises(httpx.TransportError):
        server.submit(opened, content)
    assert server.wait() == 27
    assert words in server.log.read_text()


def test_failing_attack_is_named_and_sends_nothing(
    server: ServerProcess, failing: Path, run: Run
) -> None:
    opened = server.open_round("grr", 1.0, domain_size=4)
    for name, words in {
        "shape": "5 of them are an array of uint32 of shape (5,), not an array of float64 of "
        "shape (5, 3)",
        "boom": "raised RuntimeError: plan boom",
    }.items():
        options = ("--round", opened["id"], "--users", "5", "--url", server.url, "--key", ADMIN_KEY)
        stderr = run(*COMMAND, "sim", "attack", name, *options, sees=(failing,), code=1).stderr
        assert f"the attack '{name}' of the distribution others" in stderr
        assert words in stderr
        assert "--url" not in stderr
    assert server.http.get(f"/rounds/{opened['id']}").json()["n"] == 0


def study(tmp_path: Path, protocol: str, methods: list[str]) -> tuple[str, ...]:
    """Write a study and return the command that runs it."""
    text = f'data = "cities"\nprotocols = "{protocol}"\nusers = 500\ntrials = 2\n'
    text += f'attacks = ["none"]\nmethods = {json.dumps(methods)}\n'
    (tmp_path / "study.toml").write_text(text)
    return (*COMMAND, "study", "run", "study.toml", "--jobs", "2", "--out", "results")


def test_unexpected_error_names_loaded_distributions(
    failing: Path, run: Run, tmp_path: Path
) -> None:
    stderr = run(*study(tmp_path, "odd", ["diffstats"]), sees=(failing,), code=1).stderr
    fault = "a fault of ldprecover or of a plugin in others"
    assert f"KeyError: 'odd boom' ({fault}; `ldprecover --debug" in stderr


def test_failing_method_takes_no_other_from_a_study(
    failing: Path, run: Run, tmp_path: Path
) -> None:
    methods = ["norm-sub", "nan", "raises", "leaves"]
    ended = run(*study(tmp_path, "grr", methods), sees=(failing,))
    with (tmp_path / "results" / "cells.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    refused = {row["method"]: row["refused"] for row in rows}
    boom = "the method 'raises' of the distribution others raised ValueError: boom"
    assert not refused["norm-sub"]
    assert refused["raises"] == boom
    assert "recovered must be a numpy array of 102 finite numbers" in refused["nan"]
    assert "raised SystemExit: I leave" in refused["leaves"]
    assert all(float(row["mse"]) > 0 for row in rows if row["method"] == "norm-sub")
    assert f"raises: {boom}" in ended.stderr


def test_study_reports_a_dead_worker(failing: Path, run: Run, tmp_path: Path) -> None:
    stderr = run(*study(tmp_path, "grr", ["exits"]), sees=(failing,), code=1).stderr
    assert "a worker process has died" in stderr


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("raise SystemExit(7)", "cannot be imported: SystemExit: 7"),
        ("raise GeneratorExit", "cannot be imported: GeneratorExit"),
        ("import nothing_like_it", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_warns_of_plugin_that_cannot_be_imported(
    server: ServerProcess, run: Run, tmp_path: Path, module: str, words: str
) -> None:
    site = write_plugins(tmp_path, {"methods": "kind = others:METHOD"}, module)
    name = server.open_round()["name"]
    ended = run(*COMMAND, "round", "list", "--url", server.url, "--json", sees=(site,))
    assert name in ended.stdout
    assert (
        f"warning: the plugin 'kind' of ldprecover.methods in the distribution others {words}"
        in ended.stderr
    )


def test_plugin_that_raises_keyboard_interrupt_is_named(run: Run, tmp_path: Path) -> None:
    module = "raise KeyboardInterrupt"
    site = write_plugins(tmp_path, {"methods": "kind = others:METHOD"}, module)
    stderr = run(*COMMAND, "round", "list", sees=(site,), code=130).stderr
    assert (
        "Interrupted. (the plugin 'kind' of ldprecover.methods in the distribution others cannot "
        "be imported)" in stderr
    )


def test_commands_that_need_no_plugin_load_none(broken: Path, run: Run, tmp_path: Path) -> None:
    for command in ("admin migrate", "admin key list", "admin key --help"):
        status = 0 if "--help" in command else 2  # there is no database
        run(*COMMAND, *command.split(), sees=(broken,), code=status)
    assert not (tmp_path / "imported").exists()


def test_completion_skips_broken_plugins(broken: Path, run: Run) -> None:
    code = (
        "from ldprecover_cli import completion; print(completion.methods(), completion.attacks())"
    )
    ended = run("-c", code, sees=(broken,))
    assert "norm-sub" in ended.stdout
    assert not ended.stderr

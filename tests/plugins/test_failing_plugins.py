"""Plugins that cannot be loaded, or fail when they run: other rounds and plugins go on."""

from pathlib import Path

import pytest
from tests.conftest import ServerProcess
from tests.plugins.conftest import Run, StartWithPlugins, write_plugins

COMMAND = ("-m", "ldprecover_cli")
MODULE = """
from dataclasses import dataclass, replace
from functools import cached_property

from ldprecover import GRR
from ldprecover.protocols.wire import IntegerForm
from ldprecover.recovery import METHODS


class Form(IntegerForm):
    def __init__(self, oracle):
        self.oracle = oracle
        super().__init__(GRR(1.0, 2).wire.forms, oracle.domain_size, "item")

    def check(self, reports):
        self.oracle.fail(1)


@dataclass(frozen=True)
class Steps(GRR):
    protocol = "steps"

    def fail(self, step):
        if self.epsilon == step:
            raise KeyError(f"step {step}")

    @cached_property
    def wire(self):
        return Form(self)

    def summarise(self, reports):
        self.fail(2)
        return super().summarise(reports)

    def estimate(self, counts, n):
        self.fail(3)
        return super().estimate(counts, n)


def boom(inputs):
    raise ValueError("boom")


RAISES = replace(METHODS["norm-sub"], name="raises", recover=boom)
LONG = replace(RAISES, name="raises-long", long=True)
"""


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of plugins that load and fail later."""
    groups = {
        "protocols": "steps = others:Steps",
        "methods": "raises = others:RAISES\nraises-long = others:LONG",
    }
    return write_plugins(tmp_path_factory.mktemp("failing"), groups, MODULE)


@pytest.fixture(scope="module")
def with_plugins(start_with_plugins: StartWithPlugins, failing: Path) -> ServerProcess:
    """A server that has the plugins loaded."""
    return start_with_plugins(failing, "steps,raises,raises-long")


@pytest.mark.parametrize(
    ("step", "words"),
    [(1, "others.py"), (2, "a group of submissions (1) of steps failed"), (3, "others.py")],
    ids=["check", "count", "estimate"],
)
def test_failing_protocol_is_a_500_and_other_rounds_go_on(
    with_plugins: ServerProcess, step: int, words: str
) -> None:
    failing = with_plugins.open_round("steps", step, domain_size=4)["id"]
    answer = with_plugins.submit(failing, bytes(4))
    if step == 3:
        assert answer.status_code == 202
        answer = with_plugins.http.get(f"/rounds/{failing}/frequencies")
    assert (answer.status_code, answer.json()["type"]) == (500, "/docs/errors#internal-error")
    assert "step" not in answer.text
    for protocol in ("steps", "grr"):
        healthy = with_plugins.open_round(protocol, 4, domain_size=4)["id"]
        assert with_plugins.submit(healthy, bytes(4)).status_code == 202
        assert with_plugins.frequencies(healthy)["n"] == 1
    log = with_plugins.log.read_text()
    assert words in log
    assert f"KeyError: 'step {step}'" in log


@pytest.mark.parametrize(
    ("name", "slug"), [("raises", "internal-error"), ("raises-long", "analysis-failed")]
)
def test_failing_method_is_a_500(with_plugins: ServerProcess, name: str, slug: str) -> None:
    opened = with_plugins.open_round("grr", 1.0, domain_size=4)["id"]
    assert with_plugins.submit(opened, bytes(12)).status_code == 202

    def recover(method: str) -> tuple[int, str]:
        answer = with_plugins.http.post(
            f"/rounds/{opened}/recover", json={"method": method}, headers=with_plugins.admin
        )
        return answer.status_code, answer.json().get("type", "")

    assert recover(name) == (500, f"/docs/errors#{slug}")
    assert recover("auto")[0] == 200
    log = with_plugins.log.read_text()
    assert "others.py" in log
    assert "ValueError: boom" in log
    if name == "raises-long":
        assert "an analysis of grr failed" in log


def test_warns_of_plugins_that_cannot_be_loaded(
    server: ServerProcess, run: Run, tmp_path: Path
) -> None:
    words = {
        ("methods", "lost"): "cannot be loaded: Module",
        ("methods", "number"): "it must be a Method, not 3",
        ("protocols", "kind"): "must be a subclass of FrequencyOracle",
        ("protocols", "grr"): "is taken by ldprecover itself",
        ("attacks", "kind"): "it must be a subclass of Attack",
        ("attacks", "none"): "reserved: it means no attack",
    }
    groups = {
        "methods": "lost = nothing_like_it:THREE\nnumber = others:THREE",
        "protocols": "kind = others:THREE\ngrr = others:THREE",
        "attacks": "kind = others:THREE\nnone = others:THREE",
    }
    site = write_plugins(tmp_path, groups, "THREE = 3")
    opened = server.open_round()["name"]
    ended = run(*COMMAND, "round", "list", "--url", server.url, "--json", sees=(site,))
    assert opened in ended.stdout
    for (group, name), reason in words.items():
        warning = f"warning: the plugin '{name}' of ldprecover.{group} in the distribution"
        assert any(warning in line and reason in line for line in ended.stderr.splitlines()), name


def test_server_and_administration_import_no_plugin_unasked(run: Run, tmp_path: Path) -> None:
    module = "open('imported', 'w')"
    broken = write_plugins(tmp_path, {"methods": "kind = others:METHOD"}, module)
    run(*COMMAND, "admin", "key", "list", sees=(broken,), code=2)  # there is no database
    stderr = run(*COMMAND, "serve", "--plugins", "kue", sees=(broken,), code=2).stderr
    assert "no installed distribution has a plugin 'kue'" in stderr
    assert not (tmp_path / "imported").exists()

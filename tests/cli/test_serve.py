"""`serve` and `key create` as processes of their own."""

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.forked import Process, start_python

from ldprecover_cli.serve import serve_options
from ldprecover_server import Settings

Serve = Callable[..., Process]


@pytest.fixture
def serve(forking: None, tmp_path: Path) -> Iterator[Serve]:
    """Start `ldprecover serve` in the test's folder; whatever still runs at the end is killed.

    They count with numpy, and are there a second sooner.
    """
    started: list[Process] = []

    def start(*options: str, **environment: str) -> Process:
        process = start_python(
            *("-m", "ldprecover_cli", "serve", *options),
            folder=tmp_path,
            environment=os.environ | {"LDPRECOVER_KERNELS": "numpy"} | environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _url(process: Process) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, (line, process.communicate())
    return found.group()


def test_every_setting_is_an_option_with_its_default_help_and_variable(run: Any) -> None:
    assert list(serve_options().parameters) == list(Settings.model_fields)
    words = " ".join(run("serve", "--help").out.replace("│", " ").split())
    for name, field in Settings.model_fields.items():
        assert f"--{name.replace('_', '-')} " in words
        assert f"LDPRECOVER_{name.upper()}" in words
        assert field.description is not None
        assert field.description in words
        if field.default not in (None, ()):
            assert f"[default: {field.default}]" in words


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_quietly(serve: Serve, number: signal.Signals) -> None:
    process = serve("--port", "0")
    url = _url(process)
    assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
    process.send_signal(number)
    out, err = process.communicate()
    assert err == ""
    assert out.splitlines()[-1] == "Stopping: requests in progress finish first."
    assert process.returncode in (0, -signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_server_has_begun_ends_it_without_a_warning(
    tmp_path: Path, number: signal.Signals
) -> None:
    """It comes right after the first lines, while the server's event loop is being loaded."""
    code = (
        "import os, uvicorn\n"
        "load = uvicorn.Config.get_loop_factory\n"
        f"uvicorn.Config.get_loop_factory = lambda config: (os.kill(os.getpid(), {int(number)}), "
        "load(config))[1]\n"
        "from ldprecover_cli.app import run\n"
        "raise SystemExit(run(['serve', '--port', '0']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "Stopping: requests in progress finish first."


def test_an_option_beats_its_variable_and_the_variable_beats_the_default(
    serve: Serve, tmp_path: Path
) -> None:
    variables = {"LDPRECOVER_DATABASE_URL": "sqlite:///variable.db", "LDPRECOVER_PORT": "0"}
    _url(serve("--database-url", "sqlite:///option.db", **variables))
    assert (tmp_path / "option.db").exists()
    _url(serve(**variables))
    assert (tmp_path / "variable.db").exists()
    assert not (tmp_path / "ldprecover.db").exists()


def test_a_key_made_beside_a_running_server_opens_rounds(
    serve: Serve, run: Any, tmp_path: Path
) -> None:
    url = _url(serve("--port", "0", LDPRECOVER_ADMIN_KEY="a-key-of-enough-characters"))
    made = run("key", "create")
    assert made.err == f"An admin key of {tmp_path / 'ldprecover.db'}\n"
    assert made.out.count("\n") == 1
    arguments = ("round", "open", "--epsilon", "1", "--domain-size", "4", "--url", url)
    assert run(*arguments, "--key", made.out.strip()).code == 0
    assert run(*arguments, "--key", "a-key-of-enough-characters").code == 0
    assert run(*arguments, "--key", made.out.strip() + "x").code == 1


def test_a_database_that_is_none_has_no_keys(run: Any) -> None:
    for url, word in (
        ("postgresql://nowhere", "postgresql+psycopg"),
        ("nonsense", "cannot be read"),
    ):
        result = run("key", "create", "--database-url", url)
        assert result.code == 2
        assert word in result.error


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--port", "65536"), "--port or LDPRECOVER_PORT: "),
        (("--port", "x"), "Invalid value for '--port'"),
        (("--port", "0", "--database-url", "nonsense"), "sqlite:///"),
        (("--port", "0", "--database-url", "sqlite:///no/such/folder/a.db"), "no/such/folder"),
        (("--workers", "2", "--port", "0"), "workers"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_settings_that_cannot_work_are_one_line(
    run: Any, options: tuple[str, ...], word: str
) -> None:
    result = run("serve", *options)
    assert result.code == 2
    assert word in result.error


def test_a_misspelt_variable_is_one_line(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPRECOVER_WORKER", "2")
    for command in (("serve", "--port", "0"), ("key", "create"), ("migrate",)):
        result = run(*command)
        assert (result.code, result.error) == (
            2,
            "LDPRECOVER_WORKER is not a setting; did you mean LDPRECOVER_WORKERS?",
        )


def test_a_key_that_is_too_short_is_refused_and_not_shown(run: Any) -> None:
    result = run("serve", "--admin-key", "hunter2")
    assert result.code == 2
    assert result.error.startswith("--admin-key or LDPRECOVER_ADMIN_KEY: ")
    assert "hunter2" not in result.error


def test_a_port_or_database_in_use_is_one_line(serve: Serve, run: Any) -> None:
    url = _url(serve("--port", "0"))
    port = run("serve", "--port", url.rpartition(":")[2], "--database-url", "sqlite:///other.db")
    assert port.code == 2
    assert port.error.endswith(
        "Address already in use; try --port 0, which takes a free one, or use the running server"
    )
    database = run("serve", "--port", "0")
    assert database.code == 2
    assert "another server" in database.error


def test_the_database_is_the_servers_from_its_first_line_on(serve: Serve, tmp_path: Path) -> None:
    """Another server that started while this one's application is made would take it, and end this
    one.
    """
    _url(serve("--port", "0"))
    with (tmp_path / "ldprecover.db.lock").open("a") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def with_files(files: int, tmp_path: Path) -> subprocess.Popen[str]:
    """Start `ldprecover serve` where no more than so many files may be open."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))"
    serve = (
        "import sys; from ldprecover_cli import app; sys.exit(app.run(['serve', '--port', '0']))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", f"{limit}; {serve}"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("files", [79, 40, 16])
def test_too_few_open_files_are_one_line(tmp_path: Path, files: int) -> None:
    process = with_files(files, tmp_path)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (
        err
        == f"error: the limit on open files is {files}, and the server needs at least 80; raise it "
        "with `ulimit -n 80`\n"
    )
    assert (process.returncode, out, list(tmp_path.iterdir())) == (1, "", [])


def test_so_many_open_files_are_enough(tmp_path: Path) -> None:
    process = with_files(80, tmp_path)
    try:
        url = _url(process)
        with contextlib.ExitStack() as stack:
            crowd = [
                stack.enter_context(httpx.Client(base_url=url, trust_env=False)) for _ in range(16)
            ]
            assert [client.get("/readyz").status_code for client in crowd] == [200] * 16
    finally:
        process.terminate()
        _, err = process.communicate()
    assert err == ""

"""`serve` in separate processes."""

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.forked import Process, start_python

from ldprecover_cli.serve import serve_options
from ldprecover_client._httpx import httpx
from ldprecover_server import Settings

Serve = Callable[..., Process]


@pytest.fixture
def serve(forking: None, tmp_path: Path) -> Iterator[Serve]:
    """Start `ldprecover serve` in the test's folder; kill it at the end if it still runs.

    `first` is Python that runs before. The servers count with numpy, which starts sooner.
    """
    with contextlib.ExitStack() as stack:

        def start(options: str = "--port 0", first: str = "", **environment: str) -> Process:
            words = ["ldprecover", "serve", *options.split()]
            process = start_python(
                "-c",
                f"{first}\nimport sys; from ldprecover_cli import main; sys.argv = {words}; main()",
                folder=tmp_path,
                environment=os.environ | {"LDPRECOVER_KERNELS": "numpy"} | environment,
            )
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return process

        yield start


def _url(process: Process) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    match = re.search(r"http://\S+", line)
    assert match, (line, process.communicate())
    return match.group()


def test_every_setting_is_an_option_with_default_help_and_variable(run: Run) -> None:
    assert list(serve_options().parameters) == [*Settings.model_fields, "open_page", "help_all"]
    words = " ".join(run("serve --help-all").out.replace("│", " ").split())
    for name, field in Settings.model_fields.items():
        assert f"--{name.replace('_', '-')} " in words
        assert f"LDPRECOVER_{name.upper()}" in words
        assert " ".join((field.description or name).split()) in words
        if field.default not in (None, ()):
            assert f"[default: {field.default}]" in words


def test_help_shows_the_options_that_most_need(run: Run) -> None:
    shown = re.findall(r"^│ (--[a-z-]+) ", run("serve --help").out, re.MULTILINE)
    assert shown[-2:] == ["--help-all", "--help"]
    assert len(shown) == 12
    assert {"--port", "--database-url", "--workers", "--admin-key"} <= set(shown)


def test_link_has_an_admin_key_that_ends_with_the_process(serve: Serve) -> None:
    body = {"protocol": "grr", "epsilon": 1, "domain_size": 4}
    keys: list[str] = []
    ends = {signal.SIGINT: (130, "Interrupted.\n"), signal.SIGTERM: (-signal.SIGTERM, "")}
    for number, end in ends.items():
        process = serve("--port 0 --open")
        assert process.stdout is not None
        link = next(line for line in process.stdout if "?key=" in line).split()[-1]
        url, _, key = link.partition("/#/rounds?key=")
        keys.append(key)
        headers = [{"Authorization": f"Bearer {each}"} for each in keys]
        answers = [
            httpx.post(f"{url}/rounds", json=body, headers=each, trust_env=False)
            for each in headers
        ]
        assert [each.status_code for each in answers] == [401, 201][-len(keys) :]
        process.send_signal(number)
        out, err = process.communicate()
        assert (process.returncode, err) == end
        assert out.endswith("Stopping: requests in progress finish first.\n")
        assert not any(each in out for each in keys)


SIGNALLED = """
import signal
from pkgutil import resolve_name
owner, name = resolve_name({owner!r}), {name!r}
function = getattr(owner, name)
def signalled(*arguments, **options):
    signal.raise_signal({number})
    return function(*arguments, **options)
setattr(owner, name, signalled)
"""
"""Sends the process a signal when it calls a function."""


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("ldprecover_cli.app", "run"),
        ("ldprecover_server.storage:Storage", "prepare"),
        ("uvicorn:Server", "main_loop"),
    ],
)
def test_ends_silently_by_a_signal_while_starting(serve: Serve, owner: str, name: str) -> None:
    number = int(signal.SIGTERM)
    process = serve(first=SIGNALLED.format(owner=owner, name=name, number=number))
    _, err = process.communicate()
    assert (process.returncode, err) == (-number, "")
    _url(serve())  # which opens the same database


@pytest.mark.parametrize("name", ["get_loop_factory", "load"])
def test_process_1_exits_with_the_status_of_the_signal(serve: Serve, name: str) -> None:
    """The kernel ignores the default action of its signals."""
    signalled = SIGNALLED.format(owner="uvicorn:Config", name=name, number=int(signal.SIGTERM))
    process = serve(first=f"import os; os.getpid = lambda: 1\n{signalled}")
    _, err = process.communicate()
    assert (process.returncode, err) == (128 + signal.SIGTERM, "")


def test_option_has_precedence_over_variable_and_default(serve: Serve, tmp_path: Path) -> None:
    variables = {"LDPRECOVER_DATABASE_URL": "sqlite:///variable.db", "LDPRECOVER_PORT": "0"}
    _url(serve("--database-url sqlite:///option.db", **variables))
    _url(serve("", **variables))
    assert {file.name for file in tmp_path.glob("*.db")} == {"option.db", "variable.db"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("serve --open --host 0.0.0.0", "--open is for a loopback address, such as 127.0.0.1"),
        ("serve --open --workers 2", "--open needs --workers 1, not 2"),
        ("serve --host 192.0.2.1", "; --host names an address of this machine"),
        (
            "serve --port 0 --host ''",
            "--host or LDPRECOVER_HOST: must be a string that is not empty",
        ),
        ("serve --port 65536", "--port or LDPRECOVER_PORT: must be an integer from 0 to 65535"),
        ("serve --port x", "--port or LDPRECOVER_PORT: must be an integer from 0 to 65535"),
        ("serve --admin-key hunter2", "--admin-key or LDPRECOVER_ADMIN_KEY: must be"),
        ("serve --report-rate x", "--report-rate or LDPRECOVER_REPORT_RATE: must be a number"),
        ("serve --port 0 --database-url sqlite:///no/such/folder/a.db", "no/such/folder"),
        ("admin migrate --database-url mysql://x", "postgresql"),
        (
            "serve --port 0 --database-url postgres://a@b/db?pgbouncer=true&sslmode=require",
            "has pgbouncer, which Postgres does not know",
        ),
        ("serve --port 0 --database-url postgres://a@b/db?other=x", "unknown to libpq"),
    ],
)
def test_rejects_invalid_settings_in_one_line(run: Run, line: str, message: str) -> None:
    assert message in run(line).fails(2)


@pytest.mark.parametrize(
    "line",
    [
        "serve --port hunter22",
        "serve --admin-key 'hunter22 é'",
        "serve --log-format hunter22",
        "serve --plugins [hunter22",
        "serve --host http://app:hunter22@h --port 0",
        "serve --database-url postgresql+psycopg://app:hunter22",
        "admin check --database-url postgresql+psycopg://app:p@hunter22@127.0.0.1:1/db",
        "admin key list --database-url postgresql+psycopg://app:hunter22@127.0.0.1:1/db",
        "round list --url http://app:hunter22@127.0.0.1:1",
        "round list --url http://app:hunter22",
        "round list --url http://127.0.0.1:1/?key=hunter22",
        "round list --url htp://app:hunter22@127.0.0.1:1",
        "round list --url http://127.0.0.1:1 --key hunter22\x07",
        "send report tea --url http://127.0.0.1:1 --ticket hunter22",
    ],
)
def test_errors_show_no_secret_even_with_their_traceback(run: Run, line: str) -> None:
    result = run(f"--debug {line}")
    assert result.code != 0
    assert "hunter22" not in result.out + result.err


def _limit(files: int) -> str:
    return f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))"


def test_128_open_files_are_enough(serve: Serve) -> None:
    process = serve(first=_limit(128))
    url = _url(process)
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(httpx.Client(base_url=url, trust_env=False, verify=False))
            for _ in range(16)
        ]
        assert [client.get("/readyz").status_code for client in clients] == [200] * 16
    process.send_signal(signal.SIGTERM)
    assert process.communicate()[1] == ""

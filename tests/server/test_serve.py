"""Running the server: its first lines, its keys, its one database, and its end."""

import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from tests.conftest import ADMIN_KEY, NewDatabase, ServerProcess, StartServer
from tests.forked import start_python

from ldprecover_server import ConfigurationError, Settings, create_app, create_key, serve
from ldprecover_server.serve import listen
from ldprecover_server.storage import Storage

pytestmark = pytest.mark.sqlite


@pytest.mark.both
def test_first_lines_name_url_and_database(server: ServerProcess) -> None:
    database = str(server.database)
    if server.database_url.startswith("postgresql"):
        database = f"postgresql+psycopg://***@/{sa.make_url(server.database_url).database}?***"
    assert server.lines == [
        f"LDPRecover serves {server.url} from {database}\n",
        f"API reference: {server.url}/docs\n",
    ]
    assert server.http.base_url.port != 0


def files(server: ServerProcess) -> bytes:
    """Return every byte the server has written: to its folder, and for Postgres what the keys'
    table holds.
    """
    written = b"".join(path.read_bytes() for path in sorted(server.folder.iterdir()))
    if server.database_url.startswith("postgresql"):
        with server.sql() as database:
            for row in database.exec_driver_sql("SELECT name, hash FROM access_keys"):
                written += row.name.encode() + row.hash
    return written


@pytest.mark.both
def test_generated_admin_key_is_printed_once_and_hashed(start_server: StartServer) -> None:
    server = start_server(admin_key=None)
    (line,) = (line for line in server.lines if "Admin key" in line)
    key = line.split()[-1]
    assert len(key) >= 40
    body = {"protocol": "grr", "epsilon": 1, "domain_size": 4}
    headers = {"Authorization": f"Bearer {key}"}
    assert server.post("/rounds", json=body, headers=headers).status_code == 201
    server.restart()
    assert not any("key" in line.lower() for line in server.lines)
    assert server.post("/rounds", json=body, headers=headers).status_code == 201
    assert server.try_open().status_code == 401
    server.kill()
    written = files(server)
    assert key.encode() not in written
    assert hashlib.sha256(key.encode()).digest() in written


def test_key_of_the_settings_is_never_stored(start_server: StartServer) -> None:
    server = start_server()
    server.open_round()
    with server.sql() as database:
        assert database.exec_driver_sql("SELECT count(*) FROM access_keys").scalar_one() == 0
    server.kill()
    written = files(server)
    assert server.admin_key.encode() not in written
    assert hashlib.sha256(server.admin_key.encode()).digest() not in written


def test_new_key_works_without_restart(server: ServerProcess) -> None:
    key = create_key(Settings(database_url=server.database_url))
    body = {"protocol": "grr", "epsilon": 1, "domain_size": 4}
    for valid_key in (key, server.admin_key):
        headers = {"Authorization": f"Bearer {valid_key}"}
        assert server.post("/rounds", json=body, headers=headers).status_code == 201


def test_second_server_on_a_sqlite_file_is_an_error(server: ServerProcess) -> None:
    program = "from ldprecover_server import Settings, serve; serve(Settings())"
    environment = {
        "LDPRECOVER_DATABASE_URL": f"sqlite:///{server.database}",
        "LDPRECOVER_PORT": "0",
    }
    process = start_python("-c", program, folder=server.folder, environment=environment)
    out, err = process.communicate()
    assert process.returncode != 0
    assert out == ""
    assert f"another server has {server.database} open" in err
    assert server.get("/readyz").status_code == 200


def test_says_that_other_machines_need_a_proxy(start_server: StartServer) -> None:
    lines = start_server(host="0.0.0.0").lines
    assert any("need a proxy in front" in line for line in lines)


def test_port_in_use_is_an_error(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        settings = Settings(
            port=taken.getsockname()[1], database_url=f"sqlite:///{tmp_path / 'ldprecover.db'}"
        )
        with pytest.raises(ConfigurationError, match=r"port \d+: .*; try --port 0"):
            serve(settings)
    assert not (tmp_path / "ldprecover.db").exists()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6")
def test_all_addresses_of_ipv6_include_those_of_ipv4() -> None:
    with closing(listen("::", 0)) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=10).close()


def test_several_processes_on_sqlite_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="workers"):
        serve(Settings(workers=2, port=0, database_url=f"sqlite:///{tmp_path / 'ldprecover.db'}"))


@pytest.mark.postgres
def test_waits_for_server_processes_that_start_slowly(
    new_database: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine; uvicorn itself replaces a process that is silent for 5 seconds."""
    supervisor = Mock()
    monkeypatch.setitem(serve.__globals__, "_Supervisor", supervisor)
    monkeypatch.setattr("ldprecover_server.logs.configure", Mock())
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with new_database(tmp_path) as url:
        serve(Settings(workers=2, port=0, database_url=url))
    (config,) = supervisor.call_args.args
    assert (config.workers, config.timeout_worker_healthcheck) == (2, 30)


@pytest.mark.parametrize(
    ("version", "warns"),
    [((3, 11, 9), True), ((3, 11, 10), False), ((3, 12, 5), True), ((3, 12, 6), False)],
)
def test_warns_of_a_python_with_slow_cookies(
    version: tuple[int, ...],
    warns: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("sys.version_info", version)
    monkeypatch.setitem(serve.__globals__, "_Server", Mock(side_effect=InterruptedError))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(InterruptedError):
        serve(Settings(port=0, database_url=f"sqlite:///{tmp_path / 'ldprecover.db'}"))
    assert ("CVE-2024-7592" in capsys.readouterr().out) == warns


@pytest.mark.parametrize(
    "setting",
    [
        {"port": 65_536},
        {"workers": 0},
        {"queue_bytes": 0},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_setting_outside_its_range_is_named(setting: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        Settings(**setting)  # type: ignore[arg-type]


def test_a_setting_is_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPRECOVER_MAX_BODY_BYTES", "4096")
    assert Settings().max_body_bytes == 4096


@pytest.mark.anyio
async def test_application_whose_lifespan_was_not_run_is_not_ready(tmp_path: Path) -> None:
    """As of one that was mounted in another application, which does not run it."""
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    with closing(Storage(url)) as storage:
        storage.prepare()
    app = create_app(Settings(database_url=url))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as http:
        response = await http.get("/readyz")
    app.state.storage.close()
    assert response.status_code == 503
    assert "lifespan" in response.json()["detail"]


def test_application_runs_under_plain_uvicorn(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "uvicorn", "--factory", "ldprecover_server:create_app"]
    program += ["--root-path", "/below"]
    url = f"sqlite:///{tmp_path / 'ldprecover.db'}"
    # As a parent of the server does that looks for the application in a module.
    assert isinstance(create_app(Settings(database_url=url)), FastAPI)
    environment = {"LDPRECOVER_DATABASE_URL": url, "LDPRECOVER_ADMIN_KEY": ADMIN_KEY}
    with subprocess.Popen(
        [*program, "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = next(
            match[0] for line in process.stdout if (match := re.search(r"http://[\d.:]+", line))
        )
        try:
            headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
            with httpx.Client(base_url=address, headers=headers, trust_env=False) as http:
                body = {"name": "r", "protocol": "grr", "epsilon": 1, "domain_size": 4}
                opened = http.post("/rounds", json=body)
                assert opened.headers["location"] == f"/below/rounds/{opened.json()['id']}"
                assert http.get("/no").json()["type"] == "/below/docs/errors#not-found"
                assert http.post("/rounds/r/reports", json={"reports": [1]}).status_code == 202
                assert http.get("/rounds/r/frequencies").json()["n"] == 1
        finally:
            process.terminate()
            rest = process.stdout.read()
    assert "Application shutdown complete" in rest
    assert "Traceback" not in rest
    assert "POST" not in rest, "an access log has the addresses of reporters"


NEVER_ENDS = """
import threading
from ldprecover_server.serve import serve
from ldprecover_server.storage import Storage
serve.__globals__["_CLOSE_SECONDS"] = 1
close = Storage.close
def close_and_hang(self):
    close(self)
    threading.Event().wait()
Storage.close = close_and_hang
"""


def test_stopped_server_ends_although_a_thread_hangs(start_server: StartServer) -> None:
    server = start_server(first=NEVER_ENDS, shutdown_seconds=1)
    server.signal(signal.SIGTERM)
    assert server.wait() == -signal.SIGTERM

"""Analyses over HTTP: reports meanwhile, errors, disconnects and shutdown."""

import asyncio
import json
import signal
import socket
import struct
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from tests.conftest import ServerProcess, StartServer
from tests.server.analysis.conftest import REPORTS
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover_server.analysis.worker_pool import WorkerPool

pytestmark = pytest.mark.sqlite


LONG = {"method": "em", "options": {"iterations": 1000, "tolerance": 0}}
"""Takes minutes over the reports of `long_round`."""

MANY = np.tile(REPORTS, (100, 1)).tobytes()


def long_round(server: ServerProcess) -> str:
    """Open a round of 300,000 reports."""
    id: str = server.open_round("oue", 1.0, domain_size=64)["id"]
    assert server.submit(id, MANY).status_code == 202
    return id


def worker_processes(server: ServerProcess) -> dict[int, psutil.Process]:
    """Return the processes for analyses that a server has, by their numbers."""
    processes = {}
    for process in psutil.Process(server.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                processes[process.pid] = process
    return processes


def wait_until(condition: Any) -> None:
    """Wait for what another process does."""
    while not condition():
        time.sleep(0.01)


def busy(server: ServerProcess) -> set[int]:
    """Return the workers that hold reports, which are in an unnamed file."""
    return {
        pid
        for pid in worker_processes(server)
        if any("deleted" in file for file in open_files(pid))
    }


def open_files(pid: int) -> list[str]:
    """Return what a process has open, as Linux names it."""
    responses = []
    with suppress(OSError):  # it has ended
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                responses.append(str(file.readlink()))
    return responses


def ask(pool: ThreadPoolExecutor, server: ServerProcess, id: str) -> Future[httpx.Response]:
    """Ask for a long analysis of a round in a thread."""
    url = f"{server.url}/rounds/{id}/recover"
    return pool.submit(httpx.post, url, json=LONG, timeout=100, trust_env=False)


def test_timed_out_analysis_is_504_while_reports_are_accepted(start_server: StartServer) -> None:
    server = start_server(analyses=1, analysis_seconds=1)
    id = long_round(server)
    n = 300_000
    with ThreadPoolExecutor() as pool:
        asking = ask(pool, server, id)
        while not asking.done() or n == 300_000:
            assert server.submit(id, REPORTS[:10].tobytes()).status_code == 202
            n += 10
            assert server.frequencies(id)["n"] == n
    assert server.post(f"/rounds/{id}/recover").status_code == 200
    assert problem_of(asking.result()) == "analysis-timeout"


def disconnect_while_running(server: ServerProcess, path: str, fields: dict[str, Any]) -> int:
    """Post a request, and reset the connection when a worker has the reports; return its pid."""
    body = json.dumps(fields)
    head = {"Host": "test", "Content-Type": "application/json", "Content-Length": len(body)}
    lines = [f"{name}: {value}\r\n" for name, value in head.items()]
    with server.connect() as caller:
        # Reset at the end: a half-closed connection would be served for 5 seconds more.
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.sendall(f"POST {path} HTTP/1.1\r\n{''.join(lines)}\r\n{body}".encode())
        wait_until(lambda: busy(server))
        (worker,) = busy(server)
    return worker


def test_disconnect_kills_the_worker(start_server: StartServer) -> None:
    server = start_server(analyses=2)
    worker = disconnect_while_running(server, f"/rounds/{long_round(server)}/recover", LONG)
    wait_until(lambda: worker not in worker_processes(server))
    wait_until(lambda: 'code="499"' in server.get("/metrics", headers=server.admin).text)
    assert busy(server) == set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ended_server_leaves_no_worker(start_server: StartServer, number: signal.Signals) -> None:
    server = start_server(shutdown_seconds=1)
    id = long_round(server)
    with ThreadPoolExecutor() as pool:
        asking = ask(pool, server, id)
        wait_until(lambda: busy(server))
        workers = worker_processes(server).values()
        server.signal(number)
    if number == signal.SIGKILL:
        assert isinstance(asking.exception(), httpx.TransportError)
    else:  # immediately, not when the time for requests in progress has passed
        assert asking.result().json()["detail"] == "the server stops"
    assert server.wait() == -number
    assert not psutil.wait_procs(workers, timeout=60)[1]


def test_equal_analyses_of_an_unchanged_round_run_once(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    run = WorkerPool.run

    async def counted(self: WorkerPool, *args: Any, **options: Any) -> bytes:
        runs.append(options["keyed"])
        return await run(self, *args, **options)

    monkeypatch.setattr(WorkerPool, "run", counted)
    app = start_in_process()
    id = app.open_round("oue", 1.0, domain_size=64)
    send(app, id, REPORTS[:2000])
    path = f"/rounds/{id}/alarms"
    first = {answer.text for answer in app.gather(*[("GET", path, {})] * 8)}
    assert len(first) == 1
    assert runs == [False]
    assert app.get(path, headers=app.admin).text in first
    assert app.get(path, params={"rate": 0.01}, headers=app.admin).status_code == 200
    assert runs == [False, True]
    send(app, id, REPORTS[2000:2010])
    assert app.get(path).json()["n"] == 2010
    assert len(runs) == 3


def send(app: InProcess, id: str, reports: np.ndarray) -> None:
    sent = app.submit(id, reports.tobytes())
    assert sent.status_code == 202, sent.text


def test_quick_analysis_needs_no_worker(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(self: WorkerPool, *args: Any, **options: Any) -> bytes:
        raise AssertionError("a worker was used")

    app = start_in_process()
    rounds = {d: app.open_round("grr", 1.0, domain_size=d) for d in (4096, 4097)}
    answers = {}
    monkeypatch.setattr(WorkerPool, "run", none)
    for domain_size, id in rounds.items():
        assert app.post(f"/rounds/{id}/reports", json={"reports": [1]}).status_code == 202
        request = app.http.post(f"/rounds/{id}/recover")
        answers[domain_size] = app.run(outcome(request))
    assert answers == {4096: "200", 4097: "a worker was used"}
    monkeypatch.undo()
    assert app.post(f"/rounds/{rounds[4097]}/recover").status_code == 200


async def outcome(request: Any) -> str:
    try:
        return str((await asyncio.wait_for(request, 60)).status_code)
    except AssertionError as error:
        return str(error)

"""Verdicts of real servers: kept over restarts, and shared by processes."""

import contextlib
import re
import signal
import time

import numpy as np
import pytest
from tests.conftest import NewDatabase, ServerProcess, StartServer

from ldprecover import frequency_oracle

pytestmark = pytest.mark.sqlite

ORACLE = frequency_oracle("grr", 1.0, 24)
DISABLED = {"verdict_reports": "0"}
AUTO = {"method": "auto"}


def closed_round(server: ServerProcess) -> str:
    id: str = server.open_round("grr", 1.0, domain_size=24)["id"]
    rng = np.random.default_rng(1)
    reports = ORACLE.perturb(rng.integers(24, size=500), rng)
    assert server.submit(id, reports.tobytes()).status_code == 202
    assert server.close_round(id).status_code == 200
    return id


def verdicts(server: ServerProcess) -> dict[str, object]:
    """Return the verdicts of all rounds by id."""
    return {each["id"]: each["verdict"] for each in server.get("/rounds").json()["rounds"]}


def await_verdicts(server: ServerProcess) -> dict[str, object]:
    """Return the verdicts of all rounds once each has one."""
    while True:
        by_id = verdicts(server)
        if None not in by_id.values():
            return by_id
        time.sleep(0.05)


def number_kept(server: ServerProcess) -> int:
    metrics = server.get("/metrics").text
    match = re.search(r'^ldprecover_verdicts_total\{outcome="kept"\} (\d+)', metrics, re.MULTILINE)
    return int(match[1]) if match else 0


@pytest.mark.postgres
def test_two_servers_share_the_work(
    new_database: NewDatabase, start_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with new_database(tmp_path_factory.mktemp("shared")) as url, contextlib.ExitStack() as stack:
        idle = start_server(url, **DISABLED)
        for _ in range(6):
            closed_round(idle)
        servers = [start_server(url) for _ in range(2)]
        await_verdicts(idle)
        assert sum(map(number_kept, servers)) == 6
        for each in (idle, *servers):
            stack.callback(each.kill)


def test_sigterm_ends_a_server_that_computes_a_verdict(start_server: StartServer) -> None:
    """The round takes many seconds in a worker that counts with numpy."""
    server = start_server(shutdown_seconds=2)
    oracle = frequency_oracle("olh", 1.0, 4_000)
    id = server.open_round("olh", 1.0, domain_size=4_000)["id"]
    rng = np.random.default_rng(1)
    reports = oracle.perturb(rng.integers(4_000, size=200_000), rng)
    assert server.submit(id, reports.tobytes()).status_code == 202
    assert server.close_round(id).status_code == 200
    while "ldprecover_analyses_running 1.0" not in server.get("/metrics").text:
        time.sleep(0.05)
    server.signal(signal.SIGTERM)
    assert server.wait() == -signal.SIGTERM
    assert "Traceback" not in server.log.read_text()

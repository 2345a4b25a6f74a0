"""Analyses in the background, against a server that gives prepared responses."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.client.messages import CERTIFICATE, RECOVERY, round_message

from ldprecover import RoundParameters

ROUND = round_message(RoundParameters("grr", 1.0, ("a", "b")))
QUEUED = {
    "job": "j1",
    "round": "r1",
    "analysis": "recovery",
    "state": "queued",
    "progress": 0.0,
    "result": None,
    "problem": None,
}
DONE = QUEUED | {"state": "done", "progress": 1.0, "result": RECOVERY}
FAILED = DONE | {
    "state": "failed",
    "result": None,
    "problem": {"type": "about:blank", "title": "It took too long", "status": 504},
}

Responses = dict[str, tuple[int, Any]]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Responses], None]]:
    """Have a server give these responses to these requests."""
    responses: Responses = {"GET /rounds/letters/parameters": (200, ROUND)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = responses[f"{self.command} {self.path}"]
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("LDPRECOVER_URL", f"http://127.0.0.1:{server.server_address[1]}")
        try:
            yield responses.update
        finally:
            server.shutdown()
            thread.join()


def test_recovery_is_started_and_fetched_later(run: Run, stub: Any) -> None:
    stub({"POST /rounds/r1/recover": (202, QUEUED), "GET /rounds/r1/jobs/j1": (200, DONE)})
    started = run("result recover letters --background")
    command = "ldprecover result recover r1 --job j1"
    assert started.out == f"Started. `{command}` waits for it and shows it.\n"
    as_json = run("result recover letters --background --json").json
    assert as_json == {"job": "j1", "round": "r1"}
    assert run("result recover r1 --job j1 --json").json == RECOVERY
    shown = run("result recover r1 --job j1").out
    assert shown.startswith("r1: 4 reports, ldprecover*, eta 0.2\n")


CERTIFY = "result certify letters --malicious-share 0.1 --top 1 --background"


def test_certificate_is_started_and_fetched_later(run: Run, stub: Any) -> None:
    job = {"analysis": "certificate"}
    stub(
        {
            "POST /rounds/r1/certificate": (202, QUEUED | job),
            "GET /rounds/r1/jobs/j1": (200, DONE | job | {"result": CERTIFICATE}),
            "GET /rounds/r1/parameters": (200, ROUND),
        }
    )
    started = run(CERTIFY)
    assert started.out == (
        "Started. `ldprecover result certify r1 --job j1` waits for it and shows it.\n"
    )
    assert run(f"{CERTIFY} --json").json == {"job": "j1", "round": "r1"}
    assert run("result certify r1 --job j1 --json").json == CERTIFICATE
    assert "The first 1 is a." in run("result certify r1 --job j1").out


def test_command_of_a_job_is_on_one_line(run: Run, stub: Any) -> None:
    id = 100 * "j"
    stub({"POST /rounds/r1/recover": (202, QUEUED | {"job": id})})
    assert (
        f"`ldprecover result recover r1 --job {id}`"
        in run("result recover letters --background").out
    )


def test_other_analysis_is_an_error(run: Run, stub: Any) -> None:
    done = DONE | {"analysis": "certificate", "result": CERTIFICATE}
    stub({"GET /rounds/r1/jobs/j1": (200, done)})
    error = run("result recover r1 --job j1").fails(2)
    assert error == "the job is a certificate; `ldprecover result certify r1 --job j1` shows it"
    stub({"GET /rounds/r1/jobs/j1": (200, DONE)})
    error = run("result certify r1 --job j1").fails(2)
    assert error == "the job is a recovery; `ldprecover result recover r1 --job j1` shows it"


def test_result_without_a_job_is_shown(run: Run, stub: Any) -> None:
    stub(
        {
            "POST /rounds/r1/recover": (200, RECOVERY),
            "POST /rounds/r1/certificate": (200, CERTIFICATE),
            "GET /rounds/r1/parameters": (200, ROUND),
        }
    )
    assert run("result recover letters --background --json").json == RECOVERY
    assert run(f"{CERTIFY} --json").json == CERTIFICATE


@pytest.mark.parametrize(
    ("line", "analysis"),
    [
        ("result recover r1 --job j1", "recovery"),
        ("result certify r1 --job j1", "certificate"),
    ],
)
def test_failed_job_is_an_error(run: Run, stub: Any, line: str, analysis: str) -> None:
    stub({"GET /rounds/r1/jobs/j1": (200, FAILED | {"analysis": analysis})})
    assert run(line).fails(1) == "It took too long"

"""Recoveries that the server works out on its own, against one that answers what the interface
says.
"""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ldprecover import RoundParameters

PARAMETERS = RoundParameters("grr", 1.0, ("a", "b"))
ROUND = {
    "id": "r1",
    "name": "letters",
    "protocol": "grr",
    "epsilon": 1.0,
    "domain_size": 2,
    "items": ["a", "b"],
    "p": PARAMETERS.oracle.p,
    "q": PARAMETERS.oracle.q,
    "digest": PARAMETERS.digest,
}
COLUMNS = {name: [0.75, 0.25] for name in ("poisoned", "malicious", "genuine", "recovered")}
RECOVERY = {
    "round": "r1",
    "method": "ldprecover",
    "eta": 0.2,
    "malicious_sum": 1.0,
    "n": 10,
    "targets": [],
    "items": ["a", "b"],
    **COLUMNS,
}
BEGUN = {"job": "j1", "state": "queued", "progress": 0.0}
DONE = {
    "job": "j1",
    "round": "r1",
    "state": "done",
    "progress": 1.0,
    "result": RECOVERY,
    "problem": None,
}
FAILED = DONE | {
    "state": "failed",
    "result": None,
    "problem": {"type": "about:blank", "title": "It took too long", "status": 504},
}

Answers = dict[str, tuple[int, Any]]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answers], None]]:
    """A server that gives these answers to these calls."""
    answers: Answers = {"GET /rounds/letters/parameters": (200, ROUND)}

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = answers[f"{self.command} {self.path}"]
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("LDPRECOVER_URL", f"http://127.0.0.1:{server.server_address[1]}")
        try:
            yield answers.update
        finally:
            server.shutdown()
            thread.join()


def test_a_recovery_is_begun_and_asked_for_later(run: Any, stub: Any) -> None:
    stub({"POST /rounds/r1/recover": (202, BEGUN), "GET /rounds/r1/jobs/j1": (200, DONE)})
    begun = run("recover", "--round", "letters", "--background")
    assert (
        begun.out
        == "Started. `ldprecover recover --round r1 --job j1` waits for it and shows it.\n"
    )
    assert run("recover", "--round", "letters", "--background", "--json").json == {
        "job": "j1",
        "round": "r1",
    }
    assert run("recover", "--round", "r1", "--job", "j1", "--json").json == RECOVERY
    assert run("recover", "--round", "r1", "--job", "j1").out.startswith(
        "10 reports, ldprecover, eta 0.2\n"
    )


def test_a_recovery_that_is_answered_at_once_is_shown(run: Any, stub: Any) -> None:
    stub({"POST /rounds/r1/recover": (200, RECOVERY)})
    assert run("recover", "--round", "letters", "--background", "--json").json == RECOVERY


def test_a_job_that_failed_says_why(run: Any, stub: Any) -> None:
    stub({"GET /rounds/r1/jobs/j1": (200, FAILED)})
    failed = run("recover", "--round", "r1", "--job", "j1")
    assert (failed.code, failed.error) == (1, "It took too long")


def test_a_job_is_either_begun_or_asked_for(run: Any) -> None:
    assert "either --background or --job" in run("recover", "--background", "--job", "j1").error

"""Recoveries as jobs, on a stub that follows the interface."""

import json
from typing import Any

import httpx
import pytest
from tests.client.conftest import Stub
from tests.client.messages import RECOVERY

from ldprecover_client import ArgumentError, InvalidAnswerError, RefusedError


def job(state: str, progress: float = 0.0, **fields: Any) -> dict[str, Any]:
    return {
        "job": "j1",
        "round": "r1",
        "state": state,
        "progress": progress,
        "result": None,
        "problem": None,
        **fields,
    }


FAILED = {
    "type": "/docs/errors#analysis-timeout",
    "title": "It took too long",
    "status": 504,
    "detail": "60 s",
}
DONE = job("done", 1.0, result=RECOVERY)


def stub(*jobs: dict[str, Any] | None) -> Stub:
    """Start a job, then answer with these states of it; None: cancelled."""
    later = [
        httpx.Response(204) if each is None else httpx.Response(200, json=each) for each in jobs
    ]
    return Stub(httpx.Response(202, json=job("queued")), *later)


def test_job_is_started_and_waited_for() -> None:
    server_stub = stub(job("running", 0.25), job("running", 0.5), DONE)
    updates: list[Any] = []
    with server_stub.client() as server:
        started = server.start_recovery("r1", method="em", eta=0.1)
        assert (started.id, started.state, started.progress, started.is_over) == (
            "j1",
            "queued",
            0.0,
            False,
        )
        started.refresh()
        assert (started.state, started.progress) == ("running", 0.25)
        assert started.wait(updates.append) == RECOVERY
        assert started.wait() == RECOVERY
        started.refresh()
        started.cancel()
    assert server_stub.calls == ["POST /rounds/r1/recover", *["GET /rounds/r1/jobs/j1"] * 3]
    assert server_stub.requests[0].headers["Prefer"] == "respond-async"
    assert json.loads(server_stub.requests[0].content) == {"method": "em", "eta": 0.1}
    assert updates == [0.5, 1.0]
    assert server_stub.waits == [0.25, 0.5]


def test_pauses_double_up_to_limit() -> None:
    server_stub = stub(*[job("queued")] * 8, DONE)
    with server_stub.client() as server:
        server.start_recovery("r1").wait()
    assert server_stub.waits == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0, 5.0]


def test_immediate_result_is_finished_job() -> None:
    server_stub = Stub(httpx.Response(200, json=RECOVERY))
    with server_stub.client() as server:
        answered = server.start_recovery("r1")
        assert (answered.id, answered.state, answered.progress) == ("", "done", 1.0)
        assert answered.wait() == RECOVERY
    assert len(server_stub.requests) == 1


def test_job_is_found_by_id() -> None:
    server_stub = Stub(httpx.Response(200, json=DONE))
    with server_stub.client() as server:
        assert server.job("current", "j1").wait() == RECOVERY
        with pytest.raises(ArgumentError):
            server.job("r1", "j1/../../secrets")
    assert server_stub.calls == ["GET /rounds/current/jobs/j1"]


def test_failed_job_raises_reason() -> None:
    server_stub = stub(job("failed", 0.5, problem=FAILED))
    with (
        server_stub.client() as server,
        pytest.raises(RefusedError, match="It took too long: 60 s") as caught,
    ):
        server.start_recovery("r1").wait()
    assert (caught.value.status, caught.value.slug) == (504, "analysis-timeout")


def test_cancelled_job_has_no_recovery() -> None:
    server_stub = stub(None, job("cancelled", 0.5))
    with server_stub.client() as server:
        cancelled = server.start_recovery("r1")
        cancelled.cancel()
        assert cancelled.state == "cancelled"
        with pytest.raises(RefusedError, match="cancelled"):
            cancelled.wait()
    assert server_stub.calls[1:] == ["DELETE /rounds/r1/jobs/j1", "GET /rounds/r1/jobs/j1"]


def test_late_cancel_keeps_result() -> None:
    server_stub = stub(None, DONE)
    with server_stub.client() as server:
        late = server.start_recovery("r1")
        late.cancel()
        assert late.wait() == RECOVERY


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({**job("queued"), "job": None}, "job"),
        (job("lost"), "state"),
        (job("running", 1.5), "progress"),
        (job("done", 1.0), "must have"),
        (job("failed", 1.0), "must have"),
        (job("failed", 1.0, problem={"title": "x"}), "problem.type"),
        (job("done", 1.0, result={"round": "r1"}), "method"),
        ({**job("queued"), "job": "../x"}, "job"),
    ],
)
def test_rejects_malformed_job(body: Any, words: str) -> None:
    with (
        Stub(httpx.Response(200, json=body)).client() as server,
        pytest.raises(InvalidAnswerError, match=words),
    ):
        server.job("r1", "j1")

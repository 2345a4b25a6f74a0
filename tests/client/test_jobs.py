"""Analyses as jobs, on a stub that follows the interface."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.client.conftest import Stub
from tests.client.messages import CERTIFICATE, RECOVERY

from ldprecover_client import ArgumentError, Client, InvalidAnswerError, Job, RefusedError


def job(state: str, progress: float = 0.0, **fields: Any) -> dict[str, Any]:
    return {
        "job": "j1",
        "round": "r1",
        "analysis": "recovery",
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
CERTIFIED = job("done", 1.0, analysis="certificate", result=CERTIFICATE)
START: dict[str, Callable[[Client], Job]] = {
    "recovery": lambda server: server.start_recovery("r1"),
    "certificate": lambda server: server.start_certificate("r1", 0.1, questions=[{"top": 1}]),
}
both_analyses = pytest.mark.parametrize("analysis", START)


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


def test_certificate_is_started_and_waited_for() -> None:
    queued = job("queued", analysis="certificate")
    server_stub = Stub(httpx.Response(202, json=queued), httpx.Response(200, json=CERTIFIED))
    with server_stub.client() as server:
        started = server.start_certificate("r1", 0.1, questions=[{"top": 1}])
        assert (started.id, started.analysis, started.state) == ("j1", "certificate", "queued")
        assert started.wait() == CERTIFICATE
    assert server_stub.calls == ["POST /rounds/r1/certificate", "GET /rounds/r1/jobs/j1"]
    assert server_stub.requests[0].headers["Prefer"] == "respond-async"
    sent = {"malicious_share": 0.1, "questions": [{"top": 1}]}
    assert json.loads(server_stub.requests[0].content) == sent


def test_certificate_answers_all_questions() -> None:
    queued = job("queued", analysis="certificate")
    server_stub = Stub(httpx.Response(202, json=queued), httpx.Response(200, json=CERTIFIED))
    with server_stub.client() as server:
        started = server.start_certificate("r1", 0.1, questions=[{"top": 1}, {"top": 2}])
        with pytest.raises(InvalidAnswerError, match="the 2 questions, not 1"):
            started.wait()


def test_pauses_double_up_to_limit() -> None:
    server_stub = stub(*[job("queued")] * 8, DONE)
    with server_stub.client() as server:
        server.start_recovery("r1").wait()
    assert server_stub.waits == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0, 5.0]


@both_analyses
def test_immediate_result_is_finished_job(analysis: str) -> None:
    result = {"recovery": RECOVERY, "certificate": CERTIFICATE}[analysis]
    server_stub = Stub(httpx.Response(200, json=result))
    with server_stub.client() as server:
        answered = START[analysis](server)
        assert (answered.id, answered.analysis) == ("", analysis)
        assert (answered.state, answered.progress) == ("done", 1.0)
        assert answered.wait() == result
    assert len(server_stub.requests) == 1


@pytest.mark.parametrize("status", [DONE, CERTIFIED], ids=list(START))
def test_job_is_found_by_id(status: dict[str, Any]) -> None:
    server_stub = Stub(httpx.Response(200, json=status))
    with server_stub.client() as server:
        earlier = server.job("current", "j1")
        assert earlier.analysis == status["analysis"]
        assert earlier.wait() == status["result"]
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


@both_analyses
def test_cancelled_job_has_no_result(analysis: str) -> None:
    server_stub = stub(None, job("cancelled", 0.5, analysis=analysis))
    with server_stub.client() as server:
        cancelled = START[analysis](server)
        cancelled.cancel()
        assert cancelled.state == "cancelled"
        with pytest.raises(RefusedError, match=f"The {analysis} was cancelled"):
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
        (job("lost", analysis="alarms"), "analysis must be 'recovery' or 'certificate'"),
        (job("done", 1.0), "a recovery that is done must have its result"),
        (job("done", 1.0, result=CERTIFICATE), "a recovery that is done must have"),
        ({**DONE, "analysis": "certificate"}, "a certificate that is done must have"),
        ({**CERTIFIED, "result": CERTIFICATE | {"lower": [0.1]}}, "lower has 1 values for 2"),
        (job("failed", 1.0), "must have"),
        (job("failed", 1.0, problem={"title": "x"}), "problem.type"),
        (job("done", 1.0, result={"round": "r1"}), "result.method is missing"),
        ({**job("queued"), "job": "../x"}, "job"),
    ],
)
def test_rejects_malformed_job(body: Any, words: str) -> None:
    with (
        Stub(httpx.Response(200, json=body)).client() as server,
        pytest.raises(InvalidAnswerError, match=words),
    ):
        server.job("r1", "j1")

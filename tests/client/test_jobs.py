"""Recoveries as jobs, on a stub that follows the interface."""

import json
from typing import Any

import httpx
import pytest

from ldprecover_client import ArgumentError, Client, InvalidAnswerError, Job, RefusedError, Retries

RECOVERY = {
    "round": "r1",
    "method": "ldprecover",
    "eta": 0.2,
    "malicious_sum": 1.0,
    "n": 10,
    "targets": [],
    "items": ["a", "b"],
    **{name: [0.5, 0.5] for name in ("poisoned", "malicious", "genuine", "recovered")},
}
BUSY = {
    "type": "/docs/errors#analyses-busy",
    "title": "Too many analyses",
    "status": 503,
    "detail": "later",
}
FAILED = {
    "type": "/docs/errors#analysis-timeout",
    "title": "It took too long",
    "status": 504,
    "detail": "60 s",
}


def job(state: Any, progress: Any = 0.0, **fields: Any) -> Any:
    return {
        "job": "j1",
        "round": "r1",
        "state": state,
        "progress": progress,
        "result": None,
        "problem": None,
        **fields,
    }


class Stub:
    """Returns these responses in turn; records requests and waits."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.polls: list[httpx.Request] = []
        self.waits: list[float] = []

    def __call__(self, request: httpx.Request) -> Any:
        self.polls.append(request)
        status, body, *headers = self.answers.pop(0)
        kind = "application/problem+json" if status >= 400 else "application/json"
        return httpx.Response(
            status,
            content=b"" if body is None else json.dumps(body).encode(),
            headers={"Content-Type": kind, **dict(*headers)},
        )

    def server(self) -> Any:
        transport = httpx.MockTransport(self)
        return Client(
            "http://a.test", transport=transport, sleep=self.waits.append, retries=Retries(base=0)
        )

    @property
    def calls(self) -> Any:
        return [f"{request.method} {request.url.path}" for request in self.polls]


STARTED = (
    202,
    {"job": "j1", "state": "queued", "progress": 0.0},
    {"Location": "/rounds/r1/jobs/j1"},
)


def test_job_is_started_and_waited_for() -> None:
    done = job("done", 1.0, result=RECOVERY)
    stub = Stub(STARTED, (200, job("running", 0.25)), (200, job("running", 0.5)), (200, done))
    updates: list[Any] = []
    with stub.server() as server:
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
    assert stub.calls == ["POST /rounds/r1/recover", *["GET /rounds/r1/jobs/j1"] * 3]
    assert stub.polls[0].headers["Prefer"] == "respond-async"
    assert json.loads(stub.polls[0].content) == {"method": "em", "eta": 0.1}
    assert updates == [0.5, 1.0]
    assert stub.waits == [0.25, 0.5]


def test_pauses_double_up_to_limit() -> None:
    stub = Stub(STARTED, *[(200, job("queued"))] * 8, (200, job("done", 1.0, result=RECOVERY)))
    with stub.server() as server:
        server.start_recovery("r1").wait()
    assert stub.waits == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0, 5.0]


def test_immediate_result_is_finished_job() -> None:
    stub = Stub((200, RECOVERY))
    with stub.server() as server:
        answered = server.start_recovery("r1")
        assert (answered.id, answered.state, answered.progress) == ("", "done", 1.0)
        assert answered.wait() == RECOVERY
    assert len(stub.polls) == 1


def test_job_is_found_by_id() -> None:
    stub = Stub((200, job("done", 1.0, result=RECOVERY)))
    with stub.server() as server:
        assert server.job("current", "j1").wait() == RECOVERY
        with pytest.raises(ArgumentError):
            server.job("r1", "j1/../../secrets")
    assert stub.calls == ["GET /rounds/current/jobs/j1"]


def test_failed_job_raises_reason() -> None:
    stub = Stub(STARTED, (200, job("failed", 0.5, problem=FAILED)))
    with (
        stub.server() as server,
        pytest.raises(RefusedError, match="It took too long: 60 s") as caught,
    ):
        server.start_recovery("r1").wait()
    assert (caught.value.status, caught.value.slug) == (504, "analysis-timeout")


def test_cancelled_job_has_no_recovery() -> None:
    stub = Stub(STARTED, (204, None), (200, job("cancelled", 0.5)))
    with stub.server() as server:
        cancelled = server.start_recovery("r1")
        cancelled.cancel()
        assert cancelled.state == "cancelled"
        with pytest.raises(RefusedError, match="cancelled"):
            cancelled.wait()
    assert stub.calls[1:] == ["DELETE /rounds/r1/jobs/j1", "GET /rounds/r1/jobs/j1"]


def test_late_cancel_keeps_result() -> None:
    stub = Stub(STARTED, (204, None), (200, job("done", 1.0, result=RECOVERY)))
    with stub.server() as server:
        late = server.start_recovery("r1")
        late.cancel()
        assert late.wait() == RECOVERY


def test_job_cancelled_elsewhere_has_no_recovery() -> None:
    stub = Stub(STARTED, (200, job("cancelled", 0.5)))
    with stub.server() as server, pytest.raises(RefusedError, match="cancelled"):
        server.start_recovery("r1").wait()


def test_busy_server_is_polled_again() -> None:
    stub = Stub((503, BUSY, {"Retry-After": "2"}), STARTED)
    with stub.server() as server:
        assert isinstance(server.start_recovery("r1"), Job)
    assert stub.waits == [2.0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"state": "queued", "progress": 0}, "job"),
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
    with Stub((200, body)).server() as server, pytest.raises(InvalidAnswerError, match=words):
        server.job("r1", "j1")

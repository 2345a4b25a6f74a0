"""Recoveries that are asked for with `Prefer: respond-async`: started, read, and cancelled."""

from typing import Any

import pytest
from tests.server.conftest import InProcess, StartInProcess, problem_of

pytestmark = pytest.mark.sqlite


ASYNC = {"Prefer": "respond-async"}
REPORTS = {"reports": [0, 1, 2, 2, 3, 2]}


@pytest.fixture
def app(start_in_process: StartInProcess) -> InProcess:
    return start_in_process()


def filled(app: InProcess, **fields: Any) -> str:
    id = app.open_round(**fields)
    assert app.post(f"/rounds/{id}/reports", json=REPORTS, headers=app.admin).status_code == 202
    return id


def ended(app: InProcess, path: str, **options: Any) -> dict[str, Any]:
    """Return a job's status once it has ended."""
    while True:
        response = app.get(path, **options)
        assert response.status_code == 200, response.text
        if response.json()["state"] not in ("queued", "running"):
            status: dict[str, Any] = response.json()
            return status


def test_a_job_s_result_is_the_answer_of_whoever_waits(app: InProcess) -> None:
    id, body = filled(app), {"eta": 0.1, "targets": [2]}
    waited = app.post(f"/rounds/{id}/recover", json=body)
    started = app.post(f"/rounds/{id}/recover", json=body, headers=ASYNC)
    assert (started.status_code, started.headers["preference-applied"]) == (202, "respond-async")
    job = started.json()
    assert started.headers["location"] == f"/rounds/{id}/jobs/{job['job']}"
    assert (job["round"], job["state"], job["result"], job["problem"]) == (id, "queued", None, None)
    status = ended(app, started.headers["location"])
    assert (status["state"], status["progress"], status["problem"]) == ("done", 1.0, None)
    assert status["result"] == waited.json()


def test_a_job_that_fails_has_the_problem_of_whoever_waits(app: InProcess) -> None:
    id = app.open_round()
    waited = app.post(f"/rounds/{id}/recover", json={})
    assert waited.status_code == 409
    started = app.post(f"/rounds/{id}/recover", json={}, headers=ASYNC)
    status = ended(app, started.headers["location"])
    assert (status["state"], status["result"]) == ("failed", None)
    assert status["problem"] == waited.json()


def test_what_does_not_fit_is_refused_before_there_is_a_job(app: InProcess) -> None:
    response = app.post(f"/rounds/{filled(app)}/recover", json={"eta": "1"}, headers=ASYNC)
    assert problem_of(response) == "invalid-request"
    response = app.post(f"/rounds/{filled(app)}/recover", json={}, headers={"Prefer": 300 * "x"})
    assert problem_of(response) == "invalid-request"


def test_a_job_that_has_ended_can_be_cancelled_and_stays_what_it_is(app: InProcess) -> None:
    place = app.post(f"/rounds/{filled(app)}/recover", headers=ASYNC).headers["location"]
    assert ended(app, place)["state"] == "done"
    assert app.request("DELETE", place).status_code == 204
    assert app.get(place).json()["state"] == "done"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_job_is_its_round_s_alone(app: InProcess, method: str) -> None:
    one, other = filled(app), filled(app)
    place = app.post(f"/rounds/{one}/recover", headers=ASYNC).headers["location"]
    for path in (place.replace(one, other), f"/rounds/{one}/jobs/{32 * 'f'}"):
        response = app.request(method, path)
        assert problem_of(response) == "job-not-found"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_job_of_a_round_that_takes_a_key_to_read_takes_it_too(
    app: InProcess, method: str
) -> None:
    id = filled(app, read_access="key")
    place = app.post(f"/rounds/{id}/recover", headers=ASYNC | app.admin).headers["location"]
    assert ended(app, place, headers=app.admin)["state"] == "done"
    response = app.request(method, place)
    assert problem_of(response) == "unauthorized"

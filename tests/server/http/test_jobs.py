"""Analyses that are requested with `Prefer: respond-async`: started, read, and cancelled."""

from typing import Any

import httpx
import numpy as np
import pytest
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover import frequency_oracle
from ldprecover.protocols import wire
from ldprecover_interface.certificates import CertificateRequest
from ldprecover_server.analysis.worker import RECEIVED
from ldprecover_server.http.dependencies import Caller
from ldprecover_server.storage.jobs import JobAnalysis

pytestmark = pytest.mark.sqlite


ASYNC = {"Prefer": "respond-async"}
REPORTS = {"reports": [0, 1, 2, 2, 3, 2]}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "recovery": ("recover", {"eta": 0.1, "targets": [2]}),
    "certificate": ("certificate", {"malicious_share": 0.5, "questions": [{"top": 1}]}),
}
both_analyses = pytest.mark.parametrize("analysis", REQUESTS)


@pytest.fixture
def app(start_in_process: StartInProcess) -> InProcess:
    return start_in_process()


def filled(app: InProcess, **fields: Any) -> str:
    id = app.open_round(**fields)
    assert app.post(f"/rounds/{id}/reports", json=REPORTS, headers=app.admin).status_code == 202
    return id


def anonymous(app: InProcess) -> Caller:
    return Caller(app.app.api.state.services, None, False)


def start(app: InProcess, id: str, analysis: str, **headers: str) -> httpx.Response:
    """Return the response that starts a job."""
    call, body = REQUESTS[analysis]
    return app.post(f"/rounds/{id}/{call}", json=body, headers=ASYNC | headers)


def ended(app: InProcess, path: str, **options: Any) -> dict[str, Any]:
    """Return a job's status once it has ended."""
    while True:
        response = app.get(path, **options)
        assert response.status_code == 200, response.text
        if response.json()["state"] not in ("queued", "running"):
            status: dict[str, Any] = response.json()
            return status


@both_analyses
def test_result_of_a_job_is_the_response_without_it(app: InProcess, analysis: str) -> None:
    id, (call, body) = filled(app), REQUESTS[analysis]
    waited = app.post(f"/rounds/{id}/{call}", json=body)
    assert waited.status_code == 200, waited.text
    started = start(app, id, analysis)
    assert (started.status_code, started.headers["preference-applied"]) == (202, "respond-async")
    job = started.json()
    assert started.headers["location"] == f"/rounds/{id}/jobs/{job['job']}"
    assert (job["round"], job["analysis"]) == (id, analysis)
    assert (job["state"], job["result"], job["problem"]) == ("queued", None, None)
    status = ended(app, started.headers["location"])
    assert (status["job"], status["analysis"]) == (job["job"], analysis)
    assert (status["state"], status["progress"], status["problem"]) == ("done", 1.0, None)
    assert status["result"] == waited.json()


def closed(app: InProcess) -> str:
    """Return a closed round of 4,000 reports."""
    oracle, rng = frequency_oracle("grr", 3.0, 4), np.random.default_rng(4)
    id = app.open_round("grr", 3.0)
    reports = oracle.perturb(rng.choice(4, 4000, p=[0.5, 0.3, 0.1, 0.1]), rng)
    assert app.submit(id, wire.pack(reports)).status_code == 202
    assert app.close_round(id).status_code == 200
    return id


FROM_REPORTS = {"malicious_share": 0.1, "reports": True, "questions": [{"ahead": [0, 1]}]}


@pytest.mark.both
def test_certificate_from_reports_is_the_result_of_a_job(app: InProcess) -> None:
    id = closed(app)
    started = app.post(f"/rounds/{id}/certificate", json=FROM_REPORTS, headers=ASYNC)
    status = ended(app, started.headers["location"])
    assert status["result"]["from_reports"]
    assert status["result"] == app.post(f"/rounds/{id}/certificate", json=FROM_REPORTS).json()


def test_certificate_reports_its_progress(app: InProcess) -> None:
    id, heard = closed(app), list[float]()
    caller = anonymous(app)
    request = CertificateRequest.model_validate(FROM_REPORTS)

    async def certify() -> None:
        round = await caller.read(id)
        await caller.services.analyses.certify(round, request, caller, heard.append)

    app.run(certify())
    assert heard == sorted(heard)
    assert heard[0] == 0.0
    assert RECEIVED < heard[-1] < 1


@pytest.mark.both
@pytest.mark.parametrize(
    ("call", "body", "slug"),
    [
        ("recover", {}, "no-reports"),
        ("certificate", {"malicious_share": 0.1}, "no-reports"),
        ("certificate", {"malicious_tickets": 1}, "no-reports"),
    ],
)
def test_job_of_an_empty_round_fails(
    app: InProcess, call: str, body: dict[str, Any], slug: str
) -> None:
    fails_alike(app, app.open_round(), call, body, slug)


@pytest.mark.both
@pytest.mark.parametrize(
    ("call", "body", "slug"),
    [
        ("recover", {"targets": ["none"]}, "invalid-parameter"),
        ("recover", {"method": "unmix", "history": ["none"]}, "round-not-found"),
        ("certificate", {"malicious_tickets": 1}, "invalid-parameter"),
        ("certificate", {"malicious_share": 0.1, "reports": True}, "round-open"),
        ("certificate", {"malicious_share": 0.0}, "share-too-small"),
    ],
)
def test_problem_of_a_job_is_the_response_without_it(
    app: InProcess, call: str, body: dict[str, Any], slug: str
) -> None:
    id = app.open_round()
    assert app.submit(id, wire.pack(np.zeros(2000, np.int64))).status_code == 202
    fails_alike(app, id, call, body, slug)


def fails_alike(app: InProcess, id: str, call: str, body: dict[str, Any], slug: str) -> None:
    """Check that an analysis fails with this problem, and its job with an equal one."""
    waited = app.post(f"/rounds/{id}/{call}", json=body)
    assert problem_of(waited) == slug
    started = app.post(f"/rounds/{id}/{call}", json=body, headers=ASYNC)
    assert started.status_code == 202
    status = ended(app, started.headers["location"])
    assert (status["state"], status["result"]) == ("failed", None)
    assert status["problem"] == waited.json()


@both_analyses
def test_rejects_malformed_request_before_starting_a_job(app: InProcess, analysis: str) -> None:
    path = f"/rounds/{filled(app)}/{REQUESTS[analysis][0]}"
    response = app.post(path, json={"eta": "1"}, headers=ASYNC)
    assert problem_of(response) == "invalid-request"
    response = app.post(path, json=REQUESTS[analysis][1], headers={"Prefer": 300 * "x"})
    assert problem_of(response) == "invalid-request"


@both_analyses
def test_ended_job_cannot_be_cancelled(app: InProcess, analysis: str) -> None:
    place = start(app, filled(app), analysis).headers["location"]
    assert ended(app, place)["state"] == "done"
    assert app.request("DELETE", place).status_code == 204
    assert app.get(place).json()["state"] == "done"


@pytest.mark.parametrize("analysis", ["recovery", "certificate"])
def test_cancelled_job_has_no_result(app: InProcess, analysis: JobAnalysis) -> None:
    """Another process runs the job."""
    id, job = filled(app), "a" * 32
    round = app.run(anonymous(app).read(id))
    app.storage.jobs.add(job, round.seq, analysis, keyed=False)
    place = f"/rounds/{id}/jobs/{job}"
    assert app.request("DELETE", place).status_code == 204
    assert app.get(place).json() == {
        "job": job,
        "round": id,
        "analysis": analysis,
        "state": "cancelled",
        "progress": 0.0,
        "result": None,
        "problem": None,
    }


@both_analyses
def test_job_is_deleted_with_its_round(app: InProcess, analysis: str) -> None:
    id = filled(app)
    place = start(app, id, analysis).headers["location"]
    assert ended(app, place)["state"] == "done"
    assert app.request("DELETE", f"/rounds/{id}", headers=app.admin).status_code == 204
    assert problem_of(app.get(place)) == "round-not-found"
    with app.storage.database.read() as connection:
        assert connection.exec_driver_sql("SELECT id FROM jobs").all() == []


@both_analyses
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_job_is_found_in_its_round_only(app: InProcess, method: str, analysis: str) -> None:
    one, other = filled(app), filled(app)
    place = start(app, one, analysis).headers["location"]
    for path in (place.replace(one, other), f"/rounds/{one}/jobs/{32 * 'f'}"):
        response = app.request(method, path)
        assert problem_of(response) == "job-not-found"


@both_analyses
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_job_needs_the_key_of_its_round(app: InProcess, method: str, analysis: str) -> None:
    id = filled(app, read_access="key")
    place = start(app, id, analysis, **app.admin).headers["location"]
    assert ended(app, place, headers=app.admin)["state"] == "done"
    response = app.request(method, place)
    assert problem_of(response) == "unauthorized"

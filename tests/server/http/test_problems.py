"""Every error is a problem, and the type of every problem is a heading one can read."""

import json
from typing import Any

import pytest
import sqlalchemy as sa
from tests.conftest import ServerProcess, StartServer
from tests.server.conftest import StartInProcess, problem_of

from ldprecover import LDPRecoverError
from ldprecover.errors import ParameterError, ReportError
from ldprecover_interface.problems import ProblemType
from ldprecover_server import errors
from ldprecover_server.http.problems import ProblemResponse

pytestmark = pytest.mark.sqlite


def test_every_type_of_problem_has_one_error() -> None:
    assert sorted(error.type.slug for error in errors.service_errors()) == sorted(
        problem.slug for problem in ProblemType
    )
    rare = errors.MalformedBodyError, errors.RoundOpenError, errors.UnsupportedMediaTypeError
    slugs = [error.type.slug for error in rare]  # which no other test names
    assert slugs == ["malformed-body", "round-open", "unsupported-media-type"]


def test_what_the_mathematics_refuses_is_a_problem_too() -> None:
    classes = [
        cls
        for cls in LDPRecoverError.__subclasses__()
        if cls.__module__ == LDPRecoverError.__module__
    ]
    slugs = {cls: errors.as_service_error(cls("for this reason")).type.slug for cls in classes}
    assert slugs == {ParameterError: "invalid-parameter", ReportError: "invalid-report"}
    of_field = errors.as_service_error(ParameterError("eta must be small", field="eta"))
    assert of_field.type.slug == "invalid-request"
    assert of_field.members["errors"] == [{"field": "eta", "reason": "must be small"}]
    assert json.loads(bytes(ProblemResponse(ReportError("bad", 3)).body)) == {
        "type": "/docs/errors#invalid-report",
        "title": "Invalid report",
        "status": 422,
        "detail": "bad",
        "position": 3,
    }


METHODS = {
    "/rounds": {"GET", "POST"},
    "/rounds/current": {"GET", "DELETE"},
    "/rounds/current/reports": {"POST"},
    "/healthz": {"GET"},
    "/docs": {"GET"},
}


@pytest.mark.parametrize(("path", "methods"), METHODS.items(), ids=METHODS.keys())
def test_a_405_names_all_the_methods_of_the_path(
    server: ServerProcess, path: str, methods: set[str]
) -> None:
    server.open_round()
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - methods:
        response = server.http.request(method, path, headers=server.admin)
        assert problem_of(response) == "method-not-allowed"
        allowed = {name.strip() for name in response.headers["allow"].split(",")}
        assert allowed - {"HEAD", "OPTIONS"} == methods, method


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/rounds/a/b",
        "/static/nothing.js",
        "/static/%2e%2e/app.py",
        "/page/nothing.js",
        "/page/%2e%2e/page.py",
        "/%00",
        "/%ff",
        "/x" * 900,
    ],
)
def test_a_path_that_leads_nowhere_is_a_problem(server: ServerProcess, path: str) -> None:
    response = server.get(path)
    assert problem_of(response) == "not-found"


def test_a_validation_problem_names_the_first_few_fields(server: ServerProcess) -> None:
    request_body = dict.fromkeys("abcdefgh", 1)
    answer = server.post(f"/rounds/{server.open_round()['id']}/recover", json=request_body).json()
    assert [error["field"] for error in answer["errors"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"eta": 1,}', "the body is not JSON: trailing comma at line 1 column 11"),
        (b'{"eta": ' + 4000 * b"9" + b"}", "eta must be a number from 0 to 10"),
        (4000 * b"[", "the body is not JSON: recursion limit exceeded"),
    ],
    ids=["a comma too many", "digits", "nested"],
)
def test_a_body_that_is_no_json_says_why_and_where(
    server: ServerProcess, body: bytes, detail: str
) -> None:
    headers = {"Content-Type": "application/json"}
    response = server.post(
        f"/rounds/{server.open_round()['id']}/recover", content=body, headers=headers
    )
    assert problem_of(response) == "invalid-request"
    assert response.json()["detail"].startswith(detail)


@pytest.mark.both
def test_damaged_database_is_a_server_error_and_the_server_survives(
    start_server: StartServer,
) -> None:
    server = start_server()
    id = server.open_round()["id"]
    assert server.submit(id, b"\1\0\0\0").status_code == 202

    def swap_counts(counts: bytes, n: int = 2) -> bytes:
        with server.sql() as database:
            old = database.scalar(sa.text("SELECT counts FROM tallies"))
            database.execute(
                sa.text("UPDATE tallies SET counts = :counts, n = :n"), {"counts": counts, "n": n}
            )
            return bytes(old)

    whole = swap_counts(bytes(3))
    for damaged in (bytes(3), bytes(8), 4 * b"\xff" + bytes(12)):
        swap_counts(damaged)
        for answer in (server.get("/frequencies"), server.post("/recover")):
            assert problem_of(answer) == "round-damaged"
            assert "Traceback" not in answer.text
        submitted = server.submit(id, b"\2\0\0\0", "key")
        assert submitted.status_code in (500, 503)
        assert problem_of(submitted) in ("internal-error", "store-unavailable")
    assert "Traceback" in server.log.read_text()
    assert server.get("/healthz").json() == {"status": "ok"}
    swap_counts(whole, 1)
    assert server.submit(id, b"\2\0\0\0", "key").json() == {
        "round": id,
        "accepted": 1,
        "duplicate": False,
    }
    assert server.frequencies(id)["counts"] == [0, 1, 1, 0]


def test_server_fault_during_a_submission_is_a_problem(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The submission's path does not go through the framework, which would catch it elsewhere."""
    app = start_in_process()
    id = app.open_round()

    def fail(*_: Any) -> None:
        raise ZeroDivisionError("a fault")

    assert app.post(f"/rounds/{id}/reports", json={"reports": [1]}).status_code == 202
    monkeypatch.setattr("ldprecover_server.http.decoding.ReportDecoder.__call__", fail)
    response = app.post(f"/rounds/{id}/reports", json={"reports": [1]})
    assert problem_of(response) == "internal-error"
    assert "a fault" not in response.text

"""Requests that are refused over HTTP; see `tests.refusals`."""

from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from tests.refusals import ROWS
from tests.server.conftest import InProcess, problem_of

pytestmark = pytest.mark.sqlite

CALLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "open": ("POST", "/rounds", {"protocol": "grr", "epsilon": 1.0, "items": ["a", "b"]}),
    "recover": ("POST", "/rounds/{}/recover", {}),
    "certificate": ("POST", "/rounds/{}/certificate", {"malicious_share": 0.2}),
    "plan": ("GET", "/plan", {"domain_size": 10, "users": 10, "epsilon": 1.0}),
    "alarms": ("GET", "/rounds/{}/alarms", {}),
    "frequencies": ("GET", "/frequencies", {}),
    "tickets": ("POST", "/rounds/{}/tickets", {}),
    "list": ("GET", "/rounds", {}),
}


@pytest.fixture(scope="module")
def round(in_process: InProcess) -> str:
    id = in_process.open_round(items=list("abcdefghijk"))
    assert in_process.submit(id, np.zeros(4, np.int32)).status_code == 202
    return id


@pytest.mark.parametrize(("call", "field", "value", "message", "options"), ROWS)
def test_refusal_states_what_is_allowed(
    in_process: InProcess, round: str, call: str, field: str, value: Any, message: str, options: str
) -> None:
    method, path, whole = CALLS[call]
    request = whole | {field: value} if field else value
    sent = {"json" if method == "POST" else "params": request}
    before = in_process.get("/rounds").json()
    response = in_process.request(method, path.format(round), headers=in_process.admin, **sent)
    slug, body = problem_of(response), response.json()
    assert body["detail"].startswith(message)
    assert in_process.get("/rounds").json() == before
    if slug == "invalid-request":
        error = body["errors"][0]
        assert body["detail"] == f"{error['field']} {error['reason']}"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/rounds/{}/alarms?rate=0.1&Canary=a", "rate, canary, format"),
        ("GET", "/rounds?offset=5", "limit, before"),
        ("GET", "/rounds?limit%E2%80%8B=5", "limit, before"),
        ("GET", "/frequencies?f%D0%BErmat=csv", "window, format"),
        ("POST", "/recover?eta=0.4", "format"),
        ("POST", "/rounds/{}/certificate?round=x", "format"),
        ("GET", "/plan?domain_size=10&users=10&epsilon=1&sum=4", "domain_size, users, epsilon"),
        *(("GET", f"/rounds/{{}}{path}?=", "no parameters") for path in ("", "/stats", "/export")),
        ("POST", "/rounds/{}/close?dry_run=1", "no parameters"),
        ("GET", "/key?x", "no parameters"),
    ],
)
def test_unknown_query_parameter_is_refused(
    in_process: InProcess, round: str, method: str, path: str, allowed: str
) -> None:
    before = in_process.get(f"/rounds/{round}").json()
    answer = in_process.request(method, path.format(round), headers=in_process.admin)
    assert problem_of(answer) == "invalid-request"
    name = ascii(unquote(path).rpartition("?")[2].rpartition("&")[2].partition("=")[0])[1:-1]
    assert answer.json()["detail"].startswith(f"{name} is not known; there are {allowed}")
    assert in_process.get(f"/rounds/{round}").json() == before


@pytest.mark.parametrize("query", ["round=x", "dry_run", "Idempotency-Key=abc"])
def test_submission_with_a_query_is_refused(in_process: InProcess, round: str, query: str) -> None:
    before = in_process.get(f"/rounds/{round}").json()
    for path in ("/reports", f"/rounds/{round}/reports"):
        answer = in_process.post(f"{path}?{query}", json={"reports": [1]}, headers=in_process.admin)
        assert problem_of(answer) == "invalid-parameter"
    assert in_process.get(f"/rounds/{round}").json() == before

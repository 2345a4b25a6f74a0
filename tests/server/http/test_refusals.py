"""Requests that are refused over HTTP; see `tests.refusals`."""

from typing import Any

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
    in_process: InProcess,
    round: str,
    call: str,
    field: str,
    value: Any,
    message: str,
    options: str,
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

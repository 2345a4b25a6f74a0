"""Web pages of other origins: which may call, what they may send, and what they get to see."""

import httpx
import pytest
from tests.conftest import PACKED
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover_server import Settings

pytestmark = pytest.mark.sqlite


PAGE = "https://page.example.org"
SENT = "Content-Type, Authorization, Idempotency-Key, X-Request-ID"
EXPOSED = {"ETag", "Location", "Retry-After", "X-Request-ID"}


@pytest.fixture(params=[PAGE, f" http://[::1]:80 , {PAGE}", f'["{PAGE}"]', "*"])
def app(request: pytest.FixtureRequest, start_in_process: StartInProcess) -> InProcess:
    return start_in_process(cors_origins=request.param)


def preflight(
    app: InProcess, path: str, origin: str = PAGE, method: str = "POST", headers: str = SENT
) -> httpx.Response:
    preflight = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
    }
    return app.request("OPTIONS", path, headers=preflight)


def allowed(response: httpx.Response) -> bool:
    return response.headers.get("access-control-allow-origin") in (PAGE, "*")


def test_preflight_allows_methods_and_headers(app: InProcess) -> None:
    for path in ("/reports", "/rounds/R1/reports", "/rounds", "/rounds/R1/recover", "/nowhere"):
        response = preflight(app, path)
        assert response.status_code == 200
        assert allowed(response)
        assert "POST" in response.headers["access-control-allow-methods"]
        may_send = {
            name.strip().lower()
            for name in response.headers["access-control-allow-headers"].split(",")
        }
        assert {name.strip().lower() for name in SENT.split(",")} <= may_send
        assert "access-control-allow-credentials" not in response.headers
        assert len(response.headers["x-request-id"]) == 16


def test_every_response_allows_the_origin(app: InProcess) -> None:
    id = app.open_round()
    page = {"Origin": PAGE}
    opened = app.post(
        "/rounds",
        json={"protocol": "grr", "epsilon": 1, "domain_size": 4},
        headers=app.admin | page,
    )
    answers = [
        (201, opened),
        (202, app.post(f"/rounds/{id}/reports", json={"reports": [1]}, headers=page)),
        (404, app.post("/rounds/nothing/reports", json={"reports": [1]}, headers=page)),
        (405, app.get(f"/rounds/{id}/reports", headers=page)),
        (
            413,
            app.post(f"/rounds/{id}/reports", content=bytes((16 << 20) + 1), headers=page | PACKED),
        ),
        (404, app.get("/nowhere", headers=page)),
        (200, app.get(f"/rounds/{id}/parameters", headers=page)),
    ]
    assert [answer.status_code for _, answer in answers] == [status for status, _ in answers]
    for status, answer in answers:
        assert allowed(answer), status
        assert {
            name.strip() for name in answer.headers["access-control-expose-headers"].split(",")
        } >= EXPOSED
        assert status < 400 or problem_of(answer)
    assert opened.headers["location"].startswith("/rounds/")


@pytest.mark.parametrize(
    "origin", ["https://evil.example.org", "http://page.example.org", f"{PAGE}:8443", "null"]
)
def test_other_origins_get_an_error(start_in_process: StartInProcess, origin: str) -> None:
    app = start_in_process(cors_origins=PAGE)
    refused = preflight(app, "/reports", origin)
    assert problem_of(refused) == "host-not-allowed"
    assert refused.json()["detail"] == "Disallowed CORS origin"
    assert "access-control-allow-origin" not in refused.headers
    assert (
        "access-control-allow-origin" not in app.get("/healthz", headers={"Origin": origin}).headers
    )
    families = app.get("/metrics").text
    assert 'ldprecover_refusals_total{reason="host-not-allowed"} 1.0' in families
    assert 'ldprecover_requests_total{code="400",method="OPTIONS",route="none"} 1.0' in families


@pytest.mark.parametrize(("method", "headers"), [("PUT", SENT), ("POST", "X-Other")])
def test_rejects_unused_method_and_header(
    start_in_process: StartInProcess, method: str, headers: str
) -> None:
    app = start_in_process(cors_origins=PAGE)
    assert (
        problem_of(preflight(app, "/reports", method=method, headers=headers)) == "host-not-allowed"
    )


def test_cacheable_response_varies_by_origin(start_in_process: StartInProcess) -> None:
    """Else what was answered to one page, or to none, would be shown to another, and its browser
    would hide it.
    """
    app = start_in_process(cors_origins=PAGE)
    path = f"/rounds/{app.open_round()}/parameters"
    for headers in ({}, {"Origin": PAGE}, {"Origin": "https://evil.example.org"}):
        response = app.get(path, headers=headers)
        assert "immutable" in response.headers["cache-control"]
        assert "Origin" in response.headers["vary"]


def test_by_default_no_page_may_call(in_process: InProcess) -> None:
    preflight_response = preflight(in_process, "/reports")
    assert problem_of(preflight_response) == "method-not-allowed"
    answer = in_process.get("/healthz", headers={"Origin": PAGE})
    assert not {name for name in answer.headers if name.startswith("access-control")}


@pytest.mark.parametrize(
    "wrong",
    [
        "https://a.example/",
        "https://a.example/path",
        "a.example",
        "https://A.example",
        "null",
        "[",
        "[1]",
        "**",
    ],
)
def test_rejects_invalid_origin(wrong: str) -> None:
    with pytest.raises(ValueError, match="cors_origins"):
        Settings(cors_origins=wrong)  # type: ignore[arg-type]

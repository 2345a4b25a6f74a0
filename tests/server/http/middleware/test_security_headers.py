"""The headers that keep browsers from guessing types, framing pages and loading foreign scripts."""

import pytest
from tests.conftest import ServerProcess

pytestmark = pytest.mark.sqlite

SWAGGER = "/static/swagger-ui"
PATHS = [
    "/",
    "/page/",
    "/docs",
    "/docs/errors",
    "/openapi.json",
    f"{SWAGGER}/swagger-ui.css",
    f"{SWAGGER}/favicon-32x32.png",
    "/healthz",
    "/nowhere",
    "/rounds",
    "/reports",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_response_has_security_headers(server: ServerProcess, path: str) -> None:
    for answer in (server.get(path), server.post(path), server.request("HEAD", path)):
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"], answer
        assert answer.headers.get_list("x-frame-options") == ["DENY"]
        (policy,) = answer.headers.get_list("content-security-policy")
        assert policy.startswith("default-src '")
        assert "frame-ancestors 'none'" in policy


def test_the_reference_runs_only_its_own_scripts(server: ServerProcess) -> None:
    policy = server.get("/docs").headers["content-security-policy"]
    assert "script-src 'self' 'sha256-" in policy
    errors = server.get("/docs/errors").headers["content-security-policy"]
    assert "script-src 'self';" in errors

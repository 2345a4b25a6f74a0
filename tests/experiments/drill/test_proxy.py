"""What a drill passes through to a server, and what it keeps back."""

import gzip
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from tests.conftest import ServerProcess
from tests.experiments.drill.conftest import DRILL_TOKEN, RunningDrill, StartDrill

from ldprecover_client.bulk import MAX_BODY_BYTES
from ldprecover_experiments.drill.app import HEAD
from ldprecover_experiments.drill.guard import HEADER


class _Incomplete(BaseHTTPRequestHandler):
    """Closes the connection during each response, as a killed server does."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"<head>")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Echo(BaseHTTPRequestHandler):
    """Responds with the request; `/slow` waits until the caller has disconnected."""

    protocol_version = "HTTP/1.1"
    started, disconnected = threading.Event(), threading.Event()

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/below/slow":
            self.started.set()
            if not self.rfile.read(1):
                self.disconnected.set()
            return
        request = {
            "method": self.command,
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "size": len(body),
        }
        text = gzip.compress(json.dumps(request).encode())
        self.send_response(418, "Teapot")
        for name, value in (
            ("Content-Type", "application/json"),
            ("Content-Encoding", "gzip"),
            ("Content-Length", str(len(text))),
            ("X-Odd", "first"),
            ("X-Odd", "second"),
            ("Connection", "X-Hop"),
            ("X-Hop", "of one connection"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else text)

    do_GET = do_HEAD = do_POST = do_DELETE = do_OPTIONS = _respond  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def upstream(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server with this handler; yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def raw_get(drill: RunningDrill, path: str) -> Iterator[http.client.HTTPConnection]:
    """Yield a connection that has sent a request whose path is not normalised."""
    with closing(http.client.HTTPConnection(urlsplit(drill.url).netloc)) as connection:
        connection.request("GET", path)
        yield connection


@pytest.fixture(scope="module")
def echo(start_drill: StartDrill) -> Iterator[RunningDrill]:
    """A drill in front of a server that responds with the request, below a base path."""
    with upstream(_Echo) as url:
        yield start_drill(f"{url}/below")


def test_response_is_forwarded_unchanged(echo: RunningDrill) -> None:
    response = echo.http.get("/rounds?limit=3&a=%2F+b")
    assert response.status_code == 418
    assert response.headers.get_list("x-odd") == ["first", "second"]
    assert response.headers["content-encoding"] == "gzip"
    assert len(response.headers.get_list("date")) == 1
    assert "x-hop" not in response.headers
    assert response.json()["path"] == "/below/rounds?limit=3&a=%2F+b"


@pytest.mark.parametrize(
    "path", ["/rounds/a%2Fb%20c", "//evil.example/x", "/%2e%2e/x", "/drill", "/drills/x"]
)
def test_path_is_forwarded_unchanged_to_one_server(echo: RunningDrill, path: str) -> None:
    with raw_get(echo, path) as connection:
        response = connection.getresponse()
        assert response.status == 418
        assert json.loads(gzip.decompress(response.read()))["path"] == f"/below{path}"


@pytest.mark.parametrize("path", ["/../x", "/rounds/../../x", "/rounds/./x"])
def test_rejects_paths_that_leave_the_base_path(echo: RunningDrill, path: str) -> None:
    with raw_get(echo, path) as connection:
        assert connection.getresponse().status == 400


def test_secrets_of_the_browser_are_not_forwarded(echo: RunningDrill) -> None:
    forwarded = {"Authorization": "Bearer key-of-the-caller", "Idempotency-Key": "k"}
    dropped = {
        "Cookie": "session=1",
        "Origin": echo.url,
        "Referer": f"{echo.url}/",
        "Connection": "close, X-Mine",
        "X-Mine": "of this connection",
        "Keep-Alive": "timeout=5",
        "TE": "trailers",
        "Proxy-Authorization": "Basic x",
    }
    body = b"x" * (1 << 20)
    request = echo.http.post("/rounds", headers=forwarded | dropped, content=body).json()
    headers = request["headers"]
    assert {name: headers[name.lower()] for name in forwarded} == forwarded
    hidden = {HEADER, *dropped} - {"Connection"}  # the drill has its own connection
    assert not {name.lower() for name in hidden} & headers.keys()
    assert DRILL_TOKEN not in str(request)
    assert headers["host"] != urlsplit(echo.url).netloc
    assert (request["method"], request["size"]) == ("POST", len(body))


def test_drill_adds_no_key_to_requests(echo: RunningDrill) -> None:
    """Visitors of the page have the rights of anyone: the drill's key is for drills alone."""
    headers = echo.http.get("/rounds").json()["headers"]
    assert "authorization" not in headers
    assert "user-agent" in headers


def test_body_of_a_request_has_the_servers_limit(echo: RunningDrill) -> None:
    response = echo.http.post("/rounds", content=bytes(MAX_BODY_BYTES + 1))
    assert (response.status_code, response.json()["status"]) == (413, 413)
    assert "16,777,216 bytes" in response.json()["detail"]


@pytest.mark.parametrize("method", ["HEAD", "DELETE", "OPTIONS"])
def test_method_is_forwarded(echo: RunningDrill, method: str) -> None:
    response = echo.http.request(method, "/rounds")
    assert response.status_code == 418
    assert method == "HEAD" or response.json()["method"] == method


def test_disconnect_cancels_the_request(echo: RunningDrill) -> None:
    with raw_get(echo, "/slow"):
        assert _Echo.started.wait(30)
    assert _Echo.disconnected.wait(30), "the server still works for a caller that disconnected"


def test_unreachable_server_is_a_problem(start_drill: StartDrill) -> None:
    with upstream(_Echo) as url:
        pass
    for path in ("/", "/rounds"):
        response = start_drill(url).http.get(path)
        assert (response.status_code, response.json()["title"]) == (502, "Bad Gateway")


def test_incomplete_response_stays_incomplete(
    start_drill: StartDrill, caplog: pytest.LogCaptureFixture
) -> None:
    with upstream(_Incomplete) as url:
        drill = start_drill(url)
        assert drill.http.get("/").status_code == 502
        with raw_get(drill, "/rounds") as connection, pytest.raises(http.client.IncompleteRead):
            connection.getresponse().read()
    assert not [record.message for record in caplog.records if record.exc_info], (
        "it is no fault of the drill"
    )


def test_page_is_the_servers_with_the_drill_in_its_head(
    drill: RunningDrill, server: ServerProcess
) -> None:
    own = server.http.get("/")
    assert HEAD not in own.text
    for headers in ({}, {"If-None-Match": own.headers["etag"]}, {"Accept-Encoding": "gzip"}):
        shown = drill.http.get("/", headers=headers)
        assert shown.status_code == 200
        assert shown.text == own.text.replace("<head>", f"<head>{HEAD}")
        assert shown.headers["content-security-policy"] == own.headers["content-security-policy"]
        assert shown.headers["cache-control"] == "no-store"
        assert "etag" not in shown.headers
    head = drill.http.head("/")
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(shown.content)))


def test_page_files_are_the_servers(drill: RunningDrill, server: ServerProcess) -> None:
    own = server.http.get("/page/app.css")
    shown = drill.http.get("/page/app.css")
    assert (shown.content, shown.headers["etag"]) == (own.content, own.headers["etag"])
    assert (
        drill.http.get("/page/app.css", headers={"If-None-Match": own.headers["etag"]}).status_code
        == 304
    )


def test_callers_use_their_own_key(drill: RunningDrill, server: ServerProcess) -> None:
    opened = drill.http.post("/rounds", json={"protocol": "grr", "epsilon": 1, "domain_size": 3})
    assert (opened.status_code, opened.json()["status"]) == (401, 401)
    opened = drill.http.post(
        "/rounds", json={"protocol": "grr", "epsilon": 1, "domain_size": 3}, headers=server.admin
    )
    assert opened.status_code == 201
    assert drill.http.get(opened.headers["location"]).json()["n"] == 0

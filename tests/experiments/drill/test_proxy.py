"""What a drill passes through to a server, and what it keeps back."""

import gzip
import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from tests.conftest import ServerProcess
from tests.experiments.drill.conftest import DRILL_TOKEN, RunningDrill, StartDrill

from ldprecover_experiments.drill.app import HEAD
from ldprecover_experiments.drill.guard import HEADER


class _Ending(BaseHTTPRequestHandler):
    """Ends in the midst of each answer, as a server that is killed."""

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
    """Answers with what it was asked; `/slow` waits until the caller has gone."""

    protocol_version = "HTTP/1.1"
    asked, gone = threading.Event(), threading.Event()

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        if self.path == "/slow":
            self.asked.set()
            if not self.rfile.read(1):
                self.gone.set()
            return
        told = {
            "method": self.command,
            "path": self.path,
            "headers": [[name.lower(), value] for name, value in self.headers.items()],
            "size": len(body),
        }
        text = gzip.compress(json.dumps(told).encode())
        self.send_response(418, "Teapot")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Odd", "first")
        self.send_header("X-Odd", "second")
        self.send_header("Set-Cookie", "kept=no")
        self.send_header("Connection", "X-Hop")
        self.send_header("X-Hop", "of one connection")
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else text)

    do_GET = do_HEAD = do_POST = do_DELETE = do_OPTIONS = _answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def echo(start_drill: StartDrill) -> Iterator[RunningDrill]:
    """A drill in front of a server that answers with what it was asked, below a path of its own."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as upstream:
        thread = threading.Thread(target=upstream.serve_forever)
        thread.start()
        yield start_drill(f"http://127.0.0.1:{upstream.server_port}/below")
        upstream.shutdown()
        thread.join()


def test_status_headers_and_body_come_back_as_they_are(echo: RunningDrill) -> None:
    answer = echo.http.get("/rounds?limit=3&a=%2F+b")
    assert answer.status_code == 418
    assert answer.headers.get_list("x-odd") == ["first", "second"]
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.headers.get_list("date")) == 1
    assert "x-hop" not in answer.headers
    assert answer.json()["path"] == "/below/rounds?limit=3&a=%2F+b"


@pytest.mark.parametrize(
    "path", ["/rounds/a%2Fb%20c", "//evil.example/x", "/%2e%2e/x", "/drill", "/drills/x"]
)
def test_path_is_forwarded_unchanged_to_one_server(echo: RunningDrill, path: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(echo.url).netloc)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 418
    assert json.loads(gzip.decompress(answer.read()))["path"] == f"/below{path}"
    connection.close()


@pytest.mark.parametrize("path", ["/../x", "/rounds/../../x", "/rounds/./x"])
def test_a_path_that_would_lead_elsewhere_is_refused(echo: RunningDrill, path: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(echo.url).netloc)
    connection.request("GET", path)
    assert connection.getresponse().status == 400
    connection.close()


def test_secrets_of_the_browser_are_not_forwarded(echo: RunningDrill) -> None:
    sent = {
        "Authorization": "Bearer key-of-the-caller",
        "Cookie": "session=1",
        "Origin": echo.url,
        "Referer": f"{echo.url}/",
        "Idempotency-Key": "k",
        "Connection": "close, X-Mine",
        "X-Mine": "of this connection",
        "Keep-Alive": "timeout=5",
        "TE": "trailers",
        "Proxy-Authorization": "Basic x",
    }
    told = echo.http.post("/rounds", headers=sent, content=b"12345").json()
    names = [name for name, _ in told["headers"]]
    assert dict(told["headers"])["authorization"] == "Bearer key-of-the-caller"
    assert dict(told["headers"])["idempotency-key"] == "k"
    kept = {
        HEADER.lower(),
        "cookie",
        "origin",
        "referer",
        "x-mine",
        "keep-alive",
        "te",
        "proxy-authorization",
    }
    assert not kept & set(names)
    assert DRILL_TOKEN not in str(told)
    assert dict(told["headers"])["host"] != urlsplit(echo.url).netloc
    assert (told["method"], told["size"]) == ("POST", 5)


def test_without_a_key_of_the_callers_own_none_is_sent(echo: RunningDrill) -> None:
    """The drill's key opens rounds for drills alone: who looks at the page has the rights of
    anyone.
    """
    told = echo.http.get("/rounds").json()
    assert "authorization" not in dict(told["headers"])
    assert "user-agent" in dict(told["headers"])


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
def test_each_method_goes_on(echo: RunningDrill, method: str) -> None:
    answer = echo.http.request(method, "/rounds")
    assert answer.status_code == 418
    assert method == "HEAD" or answer.json()["method"] == method


def test_large_body_is_forwarded(echo: RunningDrill) -> None:
    assert echo.http.post("/rounds", content=b"x" * (1 << 20)).json()["size"] == 1 << 20


def test_a_call_whose_caller_has_gone_is_broken_off(start_drill: StartDrill) -> None:
    _Echo.gone.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as upstream:
        thread = threading.Thread(target=upstream.serve_forever)
        thread.start()
        drill = start_drill(f"http://127.0.0.1:{upstream.server_port}")
        connection = http.client.HTTPConnection(urlsplit(drill.url).netloc)
        connection.request("GET", "/slow")
        assert _Echo.asked.wait(30)
        connection.close()
        assert _Echo.gone.wait(30), "the server still works for a caller who has gone"
        upstream.shutdown()
        thread.join()


def test_a_server_that_does_not_answer_is_a_problem(start_drill: StartDrill) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as nobody:
        port = nobody.server_port
    answer = start_drill(f"http://127.0.0.1:{port}").http.get("/rounds")
    assert (answer.status_code, answer.json()["title"]) == (502, "Bad Gateway")


def test_incomplete_answer_stays_incomplete(
    start_drill: StartDrill, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ending) as upstream:
        thread = threading.Thread(target=upstream.serve_forever)
        thread.start()
        drill = start_drill(f"http://127.0.0.1:{upstream.server_port}")
        assert drill.http.get("/").status_code == 502
        connection = http.client.HTTPConnection(urlsplit(drill.url).netloc)
        connection.request("GET", "/rounds")
        with pytest.raises(http.client.IncompleteRead):
            connection.getresponse().read()
        connection.close()
        upstream.shutdown()
        thread.join()
    assert not [record.message for record in caplog.records if record.exc_info], (
        "it is no fault of the drill's"
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


def test_the_pages_files_are_the_servers_own(drill: RunningDrill, server: ServerProcess) -> None:
    own = server.http.get("/page/app.css")
    shown = drill.http.get("/page/app.css")
    assert (shown.content, shown.headers["etag"]) == (own.content, own.headers["etag"])
    assert (
        drill.http.get("/page/app.css", headers={"If-None-Match": own.headers["etag"]}).status_code
        == 304
    )


def test_a_caller_with_a_key_has_the_rights_of_that_key(
    drill: RunningDrill, server: ServerProcess
) -> None:
    opened = drill.http.post("/rounds", json={"protocol": "grr", "epsilon": 1, "domain_size": 3})
    assert (opened.status_code, opened.json()["status"]) == (401, 401)
    opened = drill.http.post(
        "/rounds", json={"protocol": "grr", "epsilon": 1, "domain_size": 3}, headers=server.admin
    )
    assert opened.status_code == 201
    assert drill.http.get(opened.headers["location"]).json()["n"] == 0

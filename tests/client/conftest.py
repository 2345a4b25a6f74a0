"""A fake server that follows the HTTP interface, in memory or on a socket, with faults."""

import functools
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from tests.client.messages import round_message
from tests.conftest import ServerProcess

from ldprecover import ReportError, RoundParameters
from ldprecover.protocols import own_parameters
from ldprecover_client import Client, Ledger, Reporter, Retries, UnansweredError
from ldprecover_client._httpx import httpx

Send = Callable[[], httpx.Response]
Fault = Callable[[Send], httpx.Response]
"""What befalls a submission: it may send it on, and answers or raises."""


@dataclass
class Collector:
    """Rounds, and their submissions by key; each of `faults` handles one of the next submissions.

    A round of access "ticket" takes the tickets in `tickets`, and stores submissions by ticket.
    """

    rounds: dict[str, dict[str, Any]] = field(default_factory=dict)
    stored: dict[str, bytes] = field(default_factory=dict)
    tickets: set[str] = field(default_factory=set)
    posts: list[httpx.Request] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    connections: set[Any] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    URL: ClassVar = "http://collector.test"
    KEY: ClassVar = "a report key"
    ITEMS: ClassVar = ("New York, NY", "Los Angeles, CA", "Chicago, IL", "Houston, TX")
    AT_ONCE: ClassVar = Retries(attempts=5, base=0, longest=0)

    @staticmethod
    def problem(status: int, slug: str, detail: str = "because", **headers: str) -> httpx.Response:
        """Return a problem response."""
        body = {
            "type": f"/docs/errors#{slug}",
            "title": slug.replace("-", " "),
            "status": status,
            "detail": detail,
        }
        return httpx.Response(
            status,
            content=json.dumps(body),
            headers={"Content-Type": "application/problem+json", **headers},
        )

    @staticmethod
    def answer_lost(send: Send) -> httpx.Response:
        """A fault: the server takes the request, and its response is lost."""
        send()
        raise httpx.ReadError("connection reset")

    @staticmethod
    def request_lost(send: Send) -> httpx.Response:
        """A fault: the request is lost."""
        raise httpx.ConnectError("connection refused")

    @classmethod
    def busy(cls, status: int = 503, **headers: str) -> Fault:
        """A fault: the server is busy and stores nothing."""
        return lambda send: cls.problem(status, "busy", **headers)

    @staticmethod
    def instead(*args, **options) -> Fault:
        """A fault: return this response and store nothing."""
        return lambda send: httpx.Response(*args, **options)

    def add(
        self,
        protocol: str = "olh",
        epsilon: float = 0.5,
        items: tuple[str, ...] = ITEMS,
        id: str = "r1",
        state: str = "open",
        access: str = "open",
    ) -> dict[str, Any]:
        """Open a round; return its fields, which tests may change."""
        parameters = RoundParameters(protocol, epsilon, items)
        self.rounds[id] = round_message(
            parameters, id=id, name=f"name-of-{id}", access=access, state=state, n=0
        )
        return self.rounds[id]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        with self.lock:
            self.requests.append(request)
            is_post = request.method == "POST" and request.url.path.endswith("/reports")
            if is_post:
                self.posts.append(request)
            fault = self.faults.popleft() if is_post and self.faults else None
        return fault(lambda: self.answer(request)) if fault else self.answer(request)

    def answer(self, request: httpx.Request) -> httpx.Response:
        _, _, reference, *rest = request.url.path.split("/")
        id = next(reversed(self.rounds)) if reference == "current" and self.rounds else reference
        id = next(
            (round_["id"] for round_ in self.rounds.values() if round_["name"] == reference), id
        )
        if id not in self.rounds:
            return self.problem(404, "round-not-found")
        if rest == ["parameters"]:
            return httpx.Response(200, json=self.rounds[id])
        if rest == ["reports"]:
            return self._submit(self.rounds[id], request)
        return self.problem(404, "not-found")

    def _submit(self, round_: dict[str, Any], request: httpx.Request) -> httpx.Response:
        authorization = request.headers.get("Authorization", "")
        if round_["access"] == "ticket":
            ticket = authorization.removeprefix("Ticket ")
            if ticket not in self.tickets:
                return self.problem(401, "invalid-ticket")
            return self._store(round_, ticket, request.content)
        if round_["access"] == "key" and authorization != f"Bearer {self.KEY}":
            return self.problem(401, "unauthorized")
        return self._store(round_, request.headers["Idempotency-Key"], request.content)

    def _store(self, round_: dict[str, Any], key: str, body: bytes) -> httpx.Response:
        own = {name: round_[name] for name in own_parameters()}
        oracle = RoundParameters.named(
            round_["protocol"], round_["epsilon"], round_["items"], own
        ).oracle
        try:
            reports = oracle.wire.unpack(body)
        except ReportError as error:
            return self.problem(422, "invalid-report", str(error))
        with self.lock:
            duplicate = key in self.stored
            if not duplicate and round_["state"] == "closed":
                return self.problem(409, "round-closed")
            if self.stored.setdefault(key, body) != body:
                return self.problem(422, "idempotency-key-reused")
        return httpx.Response(
            202, json={"round": round_["id"], "accepted": len(reports), "duplicate": duplicate}
        )

    def client(self, url: str = URL, **options) -> Client:
        """Return a client of this collector."""
        return Client(url, transport=httpx.MockTransport(self), **options)

    @property
    def sent(self) -> list[tuple[str, bytes]]:
        """(key or ticket, bytes) of every submission, in order."""
        return [
            (
                headers.get("Idempotency-Key") or headers["Authorization"].removeprefix("Ticket "),
                request.content,
            )
            for request in self.posts
            for headers in (request.headers,)
        ]

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Serve this collector on a free port; yield its URL."""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                collector.connections.add(self.client_address)
                try:
                    url = collector.URL + self.path
                    response = collector(
                        httpx.Request(self.command, url, headers=dict(self.headers), content=body)
                    )
                except httpx.TransportError:
                    self.close_connection = True
                    return
                self.send_response(response.status_code)
                self.send_header("Content-Type", response.headers["Content-Type"])
                self.send_header("Content-Length", str(len(response.content)))
                self.end_headers()
                self.wfile.write(response.content)

            do_GET = do_POST = _answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()
                thread.join()


class Stub:
    """Gives the next of these outcomes to each request; records requests and waits."""

    def __init__(self, *outcomes: httpx.Response | Exception) -> None:
        self.outcomes = list(outcomes)
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def client(self, **options) -> Client:
        transport = httpx.MockTransport(self)
        return Client("http://a.test", transport=transport, sleep=self.waits.append, **options)

    @property
    def calls(self) -> list[str]:
        """Method and path of each request."""
        return [f"{request.method} {request.url.path}" for request in self.requests]


@pytest.fixture
def admin(server: ServerProcess):
    with Client(server.url, key=server.admin_key) as client:
        yield client


MakeReporter = Callable[..., Any]


@pytest.fixture
def collector() -> Collector:
    """A collector without a round."""
    return Collector()


def new_reporter(
    collector: Collector,
    round_: str = "r1",
    *,
    url: str = Collector.URL,
    ledger: Ledger | None = None,
    key: str | None = None,
    **options,
) -> Reporter:
    """Return a reporter to the collector; in-memory ledger by default."""
    client = collector.client(url, key=key, retries=Collector.AT_ONCE)
    return Reporter(client, round_, ledger=ledger or Ledger.in_memory(), **options)


@pytest.fixture
def reporter(collector: Collector) -> MakeReporter:
    """Make a reporter to the collector."""
    return functools.partial(new_reporter, collector)


LeavePending = Callable[..., None]


@pytest.fixture
def leave_pending(collector: Collector, reporter: MakeReporter) -> LeavePending:
    """Report item 0 and lose every try by a fault; by default the requests are lost."""

    def leave(round_: str = "r1", fault: Fault = collector.request_lost, **options) -> None:
        collector.faults.extend([fault] * collector.AT_ONCE.attempts)
        with pytest.raises(UnansweredError):
            reporter(round_, **options).report(0)

    return leave

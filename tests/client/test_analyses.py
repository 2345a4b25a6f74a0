"""Calls that a server may compute for minutes: long timeouts, and no futile retries."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.conftest import Collector, Stub
from tests.client.test_timeouts import trickling

from ldprecover_client import Client, RefusedError, Retries, UnansweredError
from ldprecover_client._httpx import httpx
from ldprecover_server import Settings

ANALYSES: list[Callable[[Client], Any]] = [
    lambda server: server.recover("r1"),
    lambda server: server.certify("r1", 0.1),
    lambda server: server.alarms("r1"),
]
OTHERS: list[Callable[[Client], Any]] = [
    lambda server: server.frequencies("r1"),
    lambda server: server.methods("r1"),
    lambda server: server.submit("r1", bytes(4), "key"),
]
analyses = pytest.mark.parametrize("call", ANALYSES, ids=["recover", "certify", "alarms"])
others = pytest.mark.parametrize("call", OTHERS, ids=["frequencies", "methods", "submit"])


def busy() -> httpx.Response:
    return Collector.problem(503, "busy")


def last() -> httpx.Response:
    return Collector.problem(404, "round-not-found")


def test_default_timeout_covers_server_limits():
    """An analysis may be queued as long as it may run."""
    default = inspect.signature(Client).parameters["analysis_timeout"].default
    assert default > 2 * Settings.model_fields["analysis_key_seconds"].default


@analyses
def test_analysis_has_analysis_timeout(call: Callable[[Client], Any]):
    stub = Stub(last())
    with stub.client(timeout=7.0, analysis_timeout=900.0) as server, pytest.raises(RefusedError):
        call(server)
    assert [request.extensions["timeout"] for request in stub.requests] == [
        {"connect": 7.0, "read": 900.0, "write": 7.0, "pool": 7.0}
    ]


@others
def test_other_calls_have_ordinary_timeout(call: Callable[[Client], Any]):
    stub = Stub(last())
    with stub.client(timeout=7.0) as server, pytest.raises(RefusedError):
        call(server)
    assert stub.requests[0].extensions["timeout"]["read"] == 7.0


def test_analysis_ignores_deadline():
    """The response trickles in, each byte in time."""
    with (
        trickling() as url,
        Client(url, deadline=5.0, analysis_timeout=0.5, retries=Retries(attempts=1)) as server,
        pytest.raises(UnansweredError, match=r"no whole answer in 0\.5 seconds"),
    ):
        server.recover("r1")


@analyses
@pytest.mark.parametrize(
    ("outcome", "error", "words"),
    [
        (Collector.problem(504, "analysis-timeout"), RefusedError, "analysis timeout"),
        (Collector.problem(500, "analysis-failed"), RefusedError, "analysis failed"),
        (httpx.Response(504, text="Gateway Timeout"), UnansweredError, "504 to .*, 2 times"),
        (httpx.ReadTimeout("timed out"), UnansweredError, "timed out"),
    ],
    ids=["timeout", "failed", "proxy timeout", "no answer"],
)
def test_failed_analysis_is_not_retried(
    call: Callable[[Client], Any], outcome, error: type[Exception], words: str
):
    stub = Stub(busy(), outcome)
    with stub.client() as server, pytest.raises(error, match=words):
        call(server)
    assert stub.outcomes == []


@analyses
def test_transient_failure_of_analysis_is_retried(call: Callable[[Client], Any]):
    """A full queue, a restarting server, and a broken connection are transient."""
    stub = Stub(
        busy(),
        httpx.Response(502, text="Bad Gateway"),
        Collector.problem(429, "rate-limited"),
        httpx.ReadError("connection reset"),
        httpx.ConnectTimeout("timed out"),
        last(),
    )
    with stub.client() as server, pytest.raises(RefusedError) as caught:
        call(server)
    assert caught.value.slug == "round-not-found"

"""Reporters of one program share a client with its connections and certificates."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.client.conftest import Collector

from ldprecover_client import (
    ArgumentError,
    AsyncClient,
    AsyncReporter,
    Client,
    Ledger,
    Reporter,
    Retries,
    UnansweredError,
)
from ldprecover_client._httpx import httpx

USERS = 50


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch):
    """Every HTTP client that is created, of either kind.

    Their connections never expire: under load one may be idle for 5 seconds, and is replaced.
    """
    created = []
    for kind in (httpx.Client, httpx.AsyncClient):

        def counted(self, *args, _init=kind.__init__, **options) -> None:
            created.append(self)
            options["limits"].keepalive_expiry = None
            _init(self, *args, **options)

        monkeypatch.setattr(kind, "__init__", counted)
    return created


def test_many_users_share_client(collector: Collector, clients):
    collector.add("grr")

    async def main(url: str):
        async with AsyncClient(url) as client:
            reporters = [
                AsyncReporter(client, "r1", ledger=Ledger.in_memory()) for _ in range(USERS)
            ]
            return await asyncio.gather(*(reporter.report(0) for reporter in reporters))

    with collector.listening() as url:
        receipts = asyncio.run(main(url))
    assert {receipt.state for receipt in receipts} == {"accepted"}
    assert len(collector.stored) == USERS
    assert len(clients) == 1
    assert len(collector.connections) <= 20  # httpcore's work grows with the square of them


@pytest.fixture(params=["sync", "async"])
def both(request: pytest.FixtureRequest):
    """A client class, a reporter class, and a function that runs their calls."""
    if request.param == "sync":
        return SimpleNamespace(make=Client, reporter=Reporter, call=lambda result: result)
    return SimpleNamespace(make=AsyncClient, reporter=AsyncReporter, call=asyncio.run)


def test_shared_key_is_not_sent_to_other_servers(collector: Collector, both):
    collector.add()
    collector.faults.append(collector.request_lost)
    ledger, at_once = _new(), Retries(attempts=1)
    transport = httpx.MockTransport(collector)
    first = both.make(collector.URL, transport=transport, retries=at_once)
    with pytest.raises(UnansweredError):
        both.call(both.reporter(first, "r1", ledger=ledger).report(0))
    second = both.make("http://other.test", key="s3cret", transport=transport, retries=at_once)
    (receipt,) = both.call(both.reporter(second, "r1", ledger=ledger).resume())
    assert receipt.state == "accepted"
    assert collector.posts[-1].url.host == "collector.test"
    assert "Authorization" not in collector.posts[-1].headers


def test_rejects_key_beside_shared_client(both):
    with pytest.raises(ArgumentError, match="key must be given to the client"):
        both.reporter(both.make("http://a.test"), ledger=_new(), key="a key")


def _new():
    return Ledger.in_memory()

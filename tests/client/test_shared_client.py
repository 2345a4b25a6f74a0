"""Reporters of one program share a client with its connections and certificates."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.client.conftest import Collector

from ldprecover_client import ArgumentError, Client, Ledger, Reporter, Retries, UnansweredError

USERS = 50


def test_many_users_share_connections(collector: Collector):
    """In threads, as a server's, which ask at any time."""
    collector.add("grr")
    with collector.listening() as url, Client(url) as client, ThreadPoolExecutor(10) as pool:

        def report(user: int) -> str:
            return Reporter(client, "r1", ledger=Ledger.in_memory()).report(0).state

        assert set(pool.map(report, range(USERS))) == {"accepted"}
    assert len(collector.stored) == USERS
    assert len(collector.connections) <= 10


def test_shared_key_is_not_sent_to_other_servers(collector: Collector):
    collector.add()
    collector.faults.append(collector.request_lost)
    ledger, at_once = Ledger.in_memory(), Retries(attempts=1)
    first = collector.client(retries=at_once)
    with pytest.raises(UnansweredError):
        Reporter(first, "r1", ledger=ledger).report(0)
    second = collector.client("http://other.test", key="s3cret", retries=at_once)
    (receipt,) = Reporter(second, "r1", ledger=ledger).resume()
    assert receipt.state == "accepted"
    assert collector.posts[-1].url.host == "collector.test"
    assert "Authorization" not in collector.posts[-1].headers


def test_rejects_key_beside_shared_client():
    with pytest.raises(ArgumentError, match="key must be given to the client"):
        Reporter(Client("http://a.test"), ledger=Ledger.in_memory(), key="a key")

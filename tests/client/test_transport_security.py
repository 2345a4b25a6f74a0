"""Warnings about keys and tickets over plain http: once, and before anything is sent."""

import pytest

from ldprecover_client import Client, InsecureTransportWarning, Ledger, Reporter, http
from ldprecover_client._httpx import httpx

TICKET = "t" * 22 + "." + "t" * 22
REMOTE = "http://collector.test"


@pytest.fixture(autouse=True)
def _nothing_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_warned", set())


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000/below", True),
        ("http://localhost", True),
        ("http://LOCALHOST:80", True),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://server:8000", False),
    ],
)
def test_is_loopback(url: str, here: bool):
    assert http.is_loopback(url) is here


@pytest.mark.parametrize("kind", [Client, Reporter])
@pytest.mark.parametrize("url", [REMOTE, "http://[2001:db8::1]"])
def test_warns_of_key_over_plain_http(kind, url: str):
    options = {"ledger": Ledger.in_memory()} if kind is Reporter else {}
    with pytest.warns(
        InsecureTransportWarning, match="the key goes to .* over plain http"
    ) as caught:
        kind(url, key="a key", **options)
    assert caught[0].filename == __file__
    kind(url, key="a key", **options)  # once: a second warning would be an error here


def test_warns_of_ticket_over_plain_http():
    ledger = Ledger.in_memory()
    with pytest.warns(
        InsecureTransportWarning, match=r"the ticket goes to collector\.test over plain http"
    ):
        Reporter(REMOTE, ledger=ledger, ticket=TICKET)


def test_submit_warns_of_ticket():
    with (
        Client(REMOTE) as server,
        pytest.raises(InsecureTransportWarning),
    ):  # warnings are errors here
        server.submit("r1", b"\0\0\0\0", "key", ticket=TICKET)


@pytest.mark.parametrize("url", ["https://collector.test", "http://127.0.0.1:9"])
@pytest.mark.parametrize("kind", [Client, Reporter])
def test_no_warning_for_tls_or_loopback(kind, url: str):
    options = {"ledger": Ledger.in_memory(), "ticket": TICKET} if kind is Reporter else {}
    kind(url, key="a key", **options)


def test_no_warning_without_secret():
    Client(REMOTE).close()
    Reporter(REMOTE, ledger=Ledger.in_memory())


def test_no_warning_for_callers_transport():
    """Such as a local socket: nobody but the caller knows where it leads."""
    transport = httpx.HTTPTransport(uds="/run/collector.sock")
    with Client("http://collector", key="a key", transport=transport) as client:
        Reporter(client, ledger=Ledger.in_memory(), ticket=TICKET)

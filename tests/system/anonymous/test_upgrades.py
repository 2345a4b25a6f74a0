"""Requests that offer another protocol, in every spelling: they are answered in this one, and
nothing hangs.
"""

import pytest
from tests.system.anonymous.attackers import Attackers, get, post, request
from tests.system.anonymous.conftest import NewTarget
from tests.system.anonymous.harness import besiege, variations
from tests.system.anonymous.report import assert_alive

pytestmark = pytest.mark.sqlite

H2C = ("HTTP2-Settings: AAMAAABkAAQAAP__", "Upgrade: h2c")
WEBSOCKET = (
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)


def healthz(*headers: str) -> bytes:
    return get("/healthz", *headers, close=False)


BODY = b'{"reports":[0]}'
PROXY = "Proxy-Connection: keep-alive, Upgrade"
OFFERS = {
    "proxy-connection": healthz(PROXY, "Upgrade: h2c"),
    "proxy-connection-alone": healthz("Proxy-Connection: Upgrade", "Upgrade: h2c"),
    "connection": healthz("Connection: keep-alive, Upgrade, HTTP2-Settings", *H2C),
    "both-connections": healthz("Connection: Upgrade", PROXY, "Upgrade: h2c"),
    "connection-and-proxy-close": healthz(
        "Connection: Upgrade", "Proxy-Connection: close", "Upgrade: h2c"
    ),
    "keep-alive-header": healthz(
        "Keep-Alive: Upgrade", "Connection: Keep-Alive, Upgrade", "Upgrade: h2c"
    ),
    "connection-twice": healthz("Connection: keep-alive", "Connection: Upgrade", "Upgrade: h2c"),
    "proxy-connection-twice": healthz(PROXY, PROXY, "Upgrade: h2c"),
    "many-upgrades": healthz(PROXY, *(f"Upgrade: h2c, x/{i}" for i in range(100))),
    "upgrade-before": healthz("Upgrade: h2c", PROXY),
    "upper-case": healthz("PROXY-CONNECTION: KEEP-ALIVE, UPGRADE", "UPGRADE: H2C"),
    "quoted": healthz('Connection: "Upgrade", upgrade', "Upgrade: h2c"),
    "commas": healthz("Connection: ,,upgrade,,upgrade , Upgrade,", "Upgrade: h2c"),
    "semicolon": healthz("Connection: upgrade;q=1, Upgrade", "Upgrade: h2c"),
    "tabs": healthz("Connection:\t\tkeep-alive,\tUpgrade\t", "Upgrade:\th2c"),
    "proxy-tabs": healthz("Proxy-Connection:\tkeep-alive,\tUpgrade\t", "Upgrade:\th2c"),
    "folded": healthz("Connection: keep-alive,\r\n Upgrade", "Upgrade: h2c"),
    "proxy-folded": healthz("Proxy-Connection: keep-alive,\r\n\tUpgrade", "Upgrade: h2c"),
    "empty-upgrade": healthz(PROXY, "Upgrade:"),
    "no-upgrade": healthz(PROXY),
    "no-connection": healthz("Upgrade: h2c"),
    "websocket": healthz("Connection: Upgrade", *WEBSOCKET),
    "proxy-websocket": healthz(PROXY, *WEBSOCKET),
    "http-1.0": healthz(PROXY, "Upgrade: h2c").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "body": request("GET /healthz", PROXY, "Upgrade: h2c", body=BODY, close=False),
    "chunked-body": request(
        "GET /healthz", PROXY, "Upgrade: h2c", "Transfer-Encoding: chunked", close=False
    )
    + b"2\r\n{}\r\n0\r\n\r\n",
    "post": post("/reports", BODY, PROXY, "Upgrade: h2c", close=False),
    "post-connection": post("/reports", BODY, "Connection: Upgrade", *H2C, close=False),
    "post-without-its-body": request("POST /reports", PROXY, "Upgrade: h2c", length=9),
    "connect": request("CONNECT x:1", PROXY, "Upgrade: h2c", close=False),
    "connect-alone": request("CONNECT x:1", close=False) + healthz(),
    "pipelined": healthz() + healthz(PROXY, "Upgrade: h2c") + healthz(),
    "pipelined-offers": 1000 * healthz("Connection: Upgrade", "Upgrade: h2c"),
    "pipelined-proxy-offers": 1000 * healthz(PROXY, "Upgrade: h2c"),
    "http-2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
}


@variations({"every-offer": OFFERS}, {name: {name: offer} for name, offer in OFFERS.items()})
def test_no_offer_of_another_protocol_stops_the_server(
    new_target: NewTarget, attack: dict[str, bytes]
) -> None:
    async def offer(attackers: Attackers) -> None:
        await attackers.together(
            *(attackers.keep_busy(1, attackers.sends(each)) for each in attack.values())
        )

    assert_alive(besiege(new_target(), offer))

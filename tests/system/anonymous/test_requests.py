"""Requests that no client of good will sends, and connections that end too soon."""

import asyncio
import socket

import pytest
from tests.system.anonymous.attackers import Attackers, get, post, request
from tests.system.anonymous.conftest import NewTarget
from tests.system.anonymous.harness import Attack, besiege, variations
from tests.system.anonymous.report import assert_alive

pytestmark = pytest.mark.sqlite

JSON = "Content-Type: application/json"
BODY = b'{"reports":[0]}'


def sending(n: int, *pieces: bytes, read: bool = True, pause: float = 0.5) -> Attack:
    async def attack(attackers: Attackers) -> None:
        await attackers.keep_busy(n, attackers.sends(*pieces, read=read), pause=pause)

    return attack


def length(*values: str) -> bytes:
    return request("POST /reports", JSON, *(f"Content-Length: {each}" for each in values)) + BODY


HEADS: dict[str, bytes] = {
    "length-of-zeros": length("0" * 5000),
    "length-of-nines": length("9" * 5000),
    "length-minus": length("-1"),
    "length-hexadecimal": length("0x10"),
    "length-of-other-digits": length("\xb2"),
    "lengths-differ": length("15", "16"),
    "lengths-agree": length("15", "15"),
    "length-2-to-the-64": length(str(1 << 64)),
    "length-and-chunked": request(
        "POST /reports", JSON, "Content-Length: 3", "Transfer-Encoding: chunked"
    )
    + BODY,
    "chunked-twice": request("POST /reports", JSON, *(2 * ["Transfer-Encoding: chunked"])) + BODY,
    "get-with-length-of-zeros": request("GET /healthz", f"Content-Length: {5000 * '0'}"),
    "many-headers": get("/healthz", *(f"X{i}: y" for i in range(5_000))),
    "ten-thousand-headers": get("/healthz", *(10_000 * ["a:"])),
    "large-header": get("/healthz", f"X: {65_000 * 'y'}"),
    "large-key": request("GET /healthz", f"Authorization: Bearer {60_000 * 'k'}"),
    "large-range": get(
        "/static/swagger-ui/swagger-ui.css", f"Range: bytes={','.join(30_000 * ['0-'])}"
    ),
    "large-etags": get(
        "/rounds/current/parameters", f"If-None-Match: {','.join(20_000 * ['W/a'])}"
    ),
    "http-0.9": b"GET /healthz\r\n\r\n",
    "http-1.0": b"GET /healthz HTTP/1.0\r\n\r\n",
    "garbage": bytes(range(256)) * 16,
    "zeros": 60_000 * b"\0",
    "more-newlines": 4_000_000 * b"\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + 500 * b"\x5a",
    "long-path": get("/" + 60_000 * "a"),
    "deep-path": get("/" + 30_000 * "a/"),
    "long-round": get(f"/rounds/{60_000 * 'a'}/frequencies"),
    "static-dots": get("/static" + 20_000 * "/.." + "/etc/passwd"),
    "percent": get("/rounds/" + 20_000 * "%41"),
    "percent-zero": get("/rounds/%00%ff%fe/frequencies"),
    "percent-wrong": get("/" + 20_000 * "%zz"),
    "long-query": get("/rounds?before=" + 60_000 * "a"),
    "many-queries": get("/rounds?" + "&".join(20_000 * ["a=1"])),
    "long-method": request(60_000 * "A" + " /healthz"),
    "unknown-method": request("BREW /healthz"),
    "trace": request("TRACE /healthz"),
    "options": request("OPTIONS *"),
    "other-encoding": post("/reports", BODY, "Transfer-Encoding: gzip, chunked"),
}


async def every_head(attackers: Attackers) -> None:
    await attackers.together(
        *(attackers.keep_busy(1, attackers.sends(head)) for head in HEADS.values())
    )


@variations({"every-head": every_head}, {name: sending(20, head) for name, head in HEADS.items()})
def test_no_head_stops_the_server(new_target: NewTarget, attack: Attack) -> None:
    target = new_target()
    target.open_round("grr", 16)
    assert_alive(besiege(target, attack))


def flood(n: int, *pieces: bytes, reset: bool = False) -> Attack:
    """Open and close connections, a thousand a second, n in all."""

    async def attack(attackers: Attackers) -> None:
        for i in range(n):
            try:
                connection = await attackers.connect()
                await attackers.send(connection, *pieces)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            if reset:
                linger = (1).to_bytes(4, "little") + bytes(4)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            attackers.drop(connection)
            if i % 20 == 19:
                await asyncio.sleep(0.02)

    return attack


PIPELINED = 10_000 * get("/healthz", close=False)
SUBMISSION = post("/reports", BODY, close=False)
# No two are alike, so that none is remembered.
PLANS = [
    get(
        f"/plan?domain_size=100000&users={1_000_000 + i}&error=0.0001&targets=100",
        close=False,
    )
    for i in range(2_000)
]

FLOODS: dict[str, Attack] = {
    "pipelined-unread": sending(2, PIPELINED, read=False),
    "pipelined-heads": sending(2, 10_000 * request("HEAD /openapi.json", close=False), read=False),
    "pipelined-refusals": sending(
        2, 3_000 * request("POST /rounds", JSON, body=b"{}", close=False), read=False
    ),
    "pipelined-submissions": sending(
        2, 3_000 * post("/rounds/none/reports", BODY, close=False), read=False
    ),
    "plans": sending(4, b"".join(PLANS), read=False),
    "connections": flood(5_000),
    "connections-reset": flood(5_000, reset=True),
    "requests-and-leave": flood(5_000, get("/healthz")),
    "submissions-under-one-key": sending(
        2000, post("/reports", BODY, "Idempotency-Key: the-same"), pause=0.05
    ),
    "refused-keys": sending(
        20, request("POST /rounds", "Authorization: Bearer wrong", JSON, body=b"{}"), pause=0.05
    ),
    "expect-and-nothing": sending(
        500, request("POST /reports", JSON, "Expect: 100-continue", length=15)
    ),
    "expect-the-unexpected": sending(
        100, request("POST /reports", JSON, "Expect: 200-ok", body=BODY)
    ),
}


async def floods(attackers: Attackers) -> None:
    await attackers.together(
        FLOODS["pipelined-unread"](attackers),
        FLOODS["connections"](attackers),
    )


@variations({"pipelined-and-connections": floods}, FLOODS)
def test_no_flood_stops_the_server(new_target: NewTarget, attack: Attack) -> None:
    target = new_target()
    target.open_round("grr", 16)
    assert_alive(besiege(target, attack))

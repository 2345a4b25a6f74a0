"""Attacks by anonymous callers behind the proxy, each beside honest clients of the same server."""

import asyncio
import gzip
import json
from collections.abc import Callable

import pytest
from tests.system.anonymous.attackers import Attackers, get, post, request
from tests.system.anonymous.conftest import NewTarget
from tests.system.anonymous.harness import Attack, besiege
from tests.system.anonymous.report import assert_alive
from tests.system.anonymous.target import WIDE, Target

pytestmark = [pytest.mark.sqlite, pytest.mark.usefixtures("many_sockets")]

MIB = 1 << 20
JSON = "Content-Type: application/json"
BODY = b'{"reports":[0]}'


def busy(
    n: int,
    *calls: bytes | list[bytes],
    read: bool = True,
    leave: bool = False,
    small: bool = False,
    pause: float = 0.5,
    per_turn: int = 200,
) -> Attack:
    """Keep n connections busy with each of these requests, which may come in pieces."""

    async def attack(attackers: Attackers) -> None:
        pieces = [[call] if isinstance(call, bytes) else call for call in calls]
        talks = [
            attackers.leaves(*each) if leave else attackers.sends(*each, read=read)
            for each in pieces
        ]
        await attackers.together(
            *(
                attackers.keep_busy(n, talk, small=small, pause=pause, per_turn=per_turn)
                for talk in talks
            )
        )

    return attack


def together(*attacks: Attack) -> Attack:
    """Do several attacks at one time."""

    async def attack(attackers: Attackers) -> None:
        await attackers.together(*(each(attackers) for each in attacks))

    return attack


def recover(id: str, **body: object) -> bytes:
    return post(f"/rounds/{id}/recover", json.dumps(body).encode())


def reads(id: str, *names: str) -> list[bytes]:
    return [get(f"/rounds/{id}/{name}") for name in names]


def lists(opening: bytes, each: bytes, n: int, closing: bytes) -> bytes:
    """Return JSON of n equal elements."""
    return opening + (n - 1) * (each + b",") + each + closing


def analyses(target: Target) -> Attack:
    """By a method that takes minutes of 300,000 OLH reports; of OUE reports over 100,000 items,
    16 MB a submission; and of 20,000 segments.
    """
    options = {"iterations": 1000, "tolerance": 0.0}
    long = recover(target.round_of("olh", 300_000, 300), method="em", options=options)
    large = target.round_of("oue", 1300, WIDE, submissions=3)
    many = reads(target.round_of_segments(20_000), "methods", "alarms")
    return together(
        busy(10, long, leave=True, pause=2.0),
        busy(10, recover(large, method="detection", targets=[0, 1, 2])),
        busy(40, *many, leave=True, pause=2.0),
    )


def odd_bodies(target: Target) -> Attack:
    """Objects for targets, a million wrong options, deep lists, a body of DELETE, 61 KiB of gzip
    that hold 63 MB of empty lists, and chunks of one byte.
    """
    path = f"/rounds/{target.round_of('grr', 100, 16)}"
    objects = lists(b'{"targets":[', b"{}", MIB, b"]}")
    options = b",".join(b'"%x":[]' % i for i in range(1_000_000))
    deep = b'{"targets":' + MIB * b"[" + MIB * b"]" + b"}"
    bodies = objects, b'{"options":{' + options + b"}}", deep
    bomb = gzip.compress(lists(b'{"reports":[', b"[]", 21_000_000, b"]}"), 9, mtime=0)
    head = request(f"POST {path}/reports", JSON, "Transfer-Encoding: chunked")
    return busy(
        4,
        *(post(f"{path}/recover", body) for body in bodies),
        request(f"DELETE {path}", JSON, body=objects),
        post(f"{path}/reports", bomb, "Content-Encoding: gzip", JSON),
        [head, 1_000_000 * b"1\r\n \r\n", b"0\r\n\r\n"],
        pause=0.3,
    )


def large_requests(target: Target) -> Attack:
    """As many targets as 1 MiB holds: decoded, a request takes many times its text."""
    id = target.round_of("grr", 1000, WIDE)
    return busy(
        400, post(f"/rounds/{id}/recover", lists(b'{"targets":[', b'"a"', MIB // 4 - 10, b"]}"))
    )


def unread_blanks(target: Target) -> Attack:
    """Megabytes of blanks, whose sender reads no answer; one answer is megabytes."""
    id = target.round_of("grr", 100, WIDE)

    def blanks(path: str, times: int, first: bytes = b"") -> list[bytes]:
        head = request(f"POST {path}", JSON, length=8 * MIB + len(first), close=False)
        return times * [head + first, *(8 * [MIB * b" "])]

    answered = blanks(f"/rounds/{id}/recover", 5, b"{}")
    rejected = [blanks(f"/rounds/{each}/reports", 20) for each in (id, "none")]
    return together(
        busy(40, *rejected, read=False, small=True), busy(4, answered, read=False, small=True)
    )


def length(*values: str) -> bytes:
    return request("POST /reports", JSON, *(f"Content-Length: {each}" for each in values)) + BODY


HEADS = [
    *(length(value) for value in ("0" * 5000, "9" * 5000, "-1", "0x10", "\xb2", str(1 << 64))),
    length("15", "16"),
    length("15", "15"),
    request("POST /reports", JSON, "Content-Length: 3", "Transfer-Encoding: chunked") + BODY,
    request("POST /reports", JSON, *(2 * ["Transfer-Encoding: chunked"])) + BODY,
    post("/reports", BODY, "Transfer-Encoding: gzip, chunked"),
    request("GET /healthz", f"Content-Length: {5000 * '0'}"),
    get("/healthz", *(f"X{i}: y" for i in range(5_000))),
    get("/healthz", *(10_000 * ["a:"])),
    get("/healthz", f"X: {65_000 * 'y'}"),
    request("GET /healthz", f"Authorization: Bearer {60_000 * 'k'}"),
    get("/static/swagger-ui/swagger-ui.css", f"Range: bytes={','.join(30_000 * ['0-'])}"),
    get("/rounds/current/parameters", f"If-None-Match: {','.join(20_000 * ['W/a'])}"),
    b"GET /healthz\r\n\r\n",
    b"GET /healthz HTTP/1.0\r\n\r\n",
    bytes(range(256)) * 16,
    60_000 * b"\0",
    4_000_000 * b"\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + 500 * b"\x5a",  # TLS
    *(get("/" + path) for path in (60_000 * "a", 30_000 * "a/", 20_000 * "%zz")),
    get(f"/rounds/{60_000 * 'a'}/frequencies"),
    get("/static" + 20_000 * "/.." + "/etc/passwd"),
    get("/rounds/" + 20_000 * "%41"),
    get("/rounds/%00%ff%fe/frequencies"),
    get("/rounds?before=" + 60_000 * "a"),
    get("/rounds?" + "&".join(20_000 * ["a=1"])),
    *(request(line) for line in (60_000 * "A" + " /healthz", "BREW /healthz", "OPTIONS *")),
]


H2C = ("HTTP2-Settings: AAMAAABkAAQAAP__", "Upgrade: h2c")
PROXY = "Proxy-Connection: keep-alive, Upgrade"
WEBSOCKET = ("Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")


def healthz(*headers: str) -> bytes:
    return get("/healthz", *headers, close=False)


OFFERS = [
    *(healthz(*headers, *H2C) for headers in ((PROXY,), ("Connection: Upgrade", PROXY))),
    healthz(PROXY, *(f"Upgrade: h2c, x/{i}" for i in range(100))),
    healthz("Connection: ,,upgrade;q=1,,upgrade , Upgrade,", "Upgrade: h2c"),
    healthz("Proxy-Connection:\tkeep-alive,\r\n\tUpgrade\t", "Upgrade:\th2c"),
    *(healthz(header, *WEBSOCKET) for header in ("Connection: Upgrade", PROXY)),
    healthz(PROXY, "Upgrade: h2c").replace(b"HTTP/1.1", b"HTTP/1.0"),
    request("GET /healthz", PROXY, "Upgrade: h2c", body=BODY, close=False),
    post("/reports", BODY, "Connection: Upgrade", *H2C, close=False),
    request("POST /reports", PROXY, "Upgrade: h2c", length=9),
    request("CONNECT x:1", PROXY, "Upgrade: h2c", close=False) + healthz(),
    1000 * healthz(PROXY, "Upgrade: h2c"),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
]


def odd_heads(target: Target) -> Attack:
    """Heads that no client of good will sends, and offers of other protocols."""
    target.open_round("grr", 16)
    return busy(1, *HEADS, *OFFERS)


def floods(target: Target) -> Attack:
    """Pipelined requests, and a thousand connections a second."""

    async def connections(attackers: Attackers) -> None:
        for i in range(5_000):
            try:
                attackers.drop(await attackers.connect())
            except OSError:
                await asyncio.sleep(0.1)
            if i % 20 == 19:
                await asyncio.sleep(0.02)

    return together(busy(2, 10_000 * healthz(), read=False), connections)


def unread_answers(target: Target) -> Attack:
    """Of a round of 100,000 items: several megabytes each."""
    call = get(f"/rounds/{target.round_of('grr', 100_000, WIDE)}/frequencies", close=False)
    return busy(300, call, read=False, small=True, per_turn=20)


def slow_connections(target: Target) -> Attack:
    """Idle ones, half a head, a head without its body, and one that expects a word first."""
    return busy(
        500,
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half: ",
        request("POST /reports", JSON, length=16 * MIB) + b"{",
        request("POST /reports", JSON, "Expect: 100-continue", length=1000),
    )


ATTACKS: list[Callable[[Target], Attack]] = [
    analyses,
    odd_bodies,
    large_requests,
    unread_blanks,
    odd_heads,
    floods,
    unread_answers,
    slow_connections,
]


@pytest.mark.parametrize("prepare", ATTACKS, ids=lambda prepare: prepare.__name__)
def test_no_attack_stops_the_server(
    new_target: NewTarget, prepare: Callable[[Target], Attack]
) -> None:
    target = new_target()
    assert_alive(besiege(target, prepare(target)))

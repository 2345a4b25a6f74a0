"""Connections that take long: that ask for much and do not read, that send slowly, or that do
nothing at all.
"""

from collections.abc import Callable

import pytest
from tests.system.anonymous.attackers import Attackers, get, post, request
from tests.system.anonymous.conftest import NewTarget
from tests.system.anonymous.harness import Attack, besiege, variations
from tests.system.anonymous.report import assert_alive

pytestmark = pytest.mark.sqlite

MIB = 1 << 20
SCRIPT = "/static/swagger-ui/swagger-ui-bundle.js"

MakeAttack = Callable[[str], Attack]


def asking(
    n: int, path: str, *, body: bytes = b"", sip: bool = False, times: int = 1
) -> MakeAttack:
    """Ask for a large answer on n connections and do not read it, or one byte a second; `times`
    pipelined.
    """

    def make(round: str) -> Attack:
        at = path.format(round=round)
        call = times * (post(at, body, close=False) if body else get(at, close=False))

        async def attack(attackers: Attackers) -> None:
            talk = attackers.sips(call) if sip else attackers.sends(call, read=False)
            await attackers.keep_busy(n, talk, small=True, per_turn=20)

        return attack

    return make


FREQUENCIES = "/rounds/{round}/frequencies"


@variations(
    {"frequencies": asking(300, FREQUENCIES)},
    {
        "pipelined-frequencies": asking(20, FREQUENCIES, times=100),
        "sipped-frequencies": asking(300, FREQUENCIES, sip=True),
        "parameters": asking(500, "/rounds/{round}/parameters"),
        "recover": asking(300, "/rounds/{round}/recover", body=b"{}"),
        "openapi": asking(1000, "/openapi.json"),
        "script": asking(1000, SCRIPT),
        "pipelined-script": asking(20, SCRIPT, times=500),
        "rounds": asking(500, "/rounds?limit=200"),
    },
)
def test_no_unread_answers_stop_the_server(new_target: NewTarget, attack: MakeAttack) -> None:
    """Of a round of 100,000 items: several megabytes an answer."""
    target = new_target()
    assert_alive(besiege(target, attack(target.grr_round(100_000, 100_000))))


def holding(n: int, *pieces: bytes) -> Attack:
    """Hold n connections that have sent these pieces and send nothing more."""

    async def attack(attackers: Attackers) -> None:
        await attackers.keep_busy(n, attackers.sends(*pieces, read=True))

    return attack


def feeding(n: int, first: bytes, each: bytes, times: int = 60) -> Attack:
    """Keep n connections that send something every second."""

    async def attack(attackers: Attackers) -> None:
        await attackers.keep_busy(n, attackers.drips(first, *(times * [each])))

    return attack


HALF = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half: "
LARGE = request("POST /reports", "Content-Type: application/json", length=16 * MIB)
LARGE_GET = request("GET /healthz", "Content-Type: application/json", length=1000, close=False)
EXPECT = request(
    "POST /reports", "Content-Type: application/json", "Expect: 100-continue", length=1000
)


def mixed(n: int) -> Attack:
    async def attack(attackers: Attackers) -> None:
        await attackers.together(
            *(
                attackers.keep_busy(n // 4, attackers.sends(head))
                for head in (b"", HALF, LARGE + b"{", EXPECT)
            )
        )

    return attack


@variations(
    {"every-kind": mixed(2000)},
    {
        "idle": holding(2000),
        "half-heads": holding(2000, HALF),
        "dripped-heads": feeding(2000, HALF, b"y"),
        "no-bodies": holding(2000, LARGE),
        "dripped-bodies": feeding(2000, LARGE, b" "),
        "dripped-chunks": feeding(
            2000,
            request(
                "POST /reports", "Content-Type: application/json", "Transfer-Encoding: chunked"
            ),
            b"1\r\n \r\n",
        ),
        "half-bodies-of-8-mib": holding(60, LARGE, *(8 * [MIB * b" "])),
        "expect": holding(2000, EXPECT),
        "bodies-of-gets": feeding(2000, LARGE_GET, b" "),
    },
)
def test_no_slow_connections_stop_the_server(new_target: NewTarget, attack: Attack) -> None:
    assert_alive(besiege(new_target(), attack))

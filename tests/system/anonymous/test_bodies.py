"""Bodies that cost the server more than their sender: much to decode, much to refuse, or nobody to
answer.
"""

import gzip
import json
from collections.abc import Callable

import pytest
from tests.system.anonymous.attackers import Attackers, post, request
from tests.system.anonymous.conftest import NewTarget
from tests.system.anonymous.harness import Attack, besiege, variations
from tests.system.anonymous.report import assert_alive

pytestmark = pytest.mark.sqlite

MIB = 1 << 20
GZIP = "Content-Encoding: gzip"
PACKED = "Content-Type: application/vnd.ldprecover.reports"

MakeAttack = Callable[[str], Attack]
"""From the id of an open round with reports."""


def zipped(body: bytes) -> bytes:
    return gzip.compress(body, 9, mtime=0)


def lists(opening: bytes, each: bytes, n: int, closing: bytes) -> bytes:
    """Return JSON of n equal elements."""
    return opening + (n - 1) * (each + b",") + each + closing


def named(opening: bytes, n: int, value: bytes, closing: bytes) -> bytes:
    """Return JSON of n fields."""
    return opening + b",".join(b'"%x":%b' % (i, value) for i in range(n)) + closing


def posting(
    path: str, body: Callable[[], bytes], *headers: str, connections: int = 4
) -> MakeAttack:
    """Post a body to a path of the round, over and over, and read each answer."""

    def make(round: str) -> Attack:
        sent = post(path.format(round=round), body(), *headers)

        async def attack(attackers: Attackers) -> None:
            await attackers.keep_busy(connections, attackers.sends(sent), pause=0.3)

        return attack

    return make


def every(*attacks: MakeAttack) -> MakeAttack:
    """Do several attacks at one time."""

    def make(round: str) -> Attack:
        each_attack = [attack(round) for attack in attacks]

        async def attack(attackers: Attackers) -> None:
            await attackers.together(*(each(attackers) for each in each_attack))

        return attack

    return make


def objects() -> bytes:
    return lists(b'{"targets":[', b"{}", MIB, b"]}")


REPORTS = "/rounds/{round}/reports"
CERTIFICATE = "/rounds/{round}/certificate"
RECOVER = "/rounds/{round}/recover"
OPTIONS: dict[str, MakeAttack] = {
    "objects-as-targets": posting(RECOVER, objects),
    "lists-as-targets": posting(RECOVER, lambda: lists(b'{"targets":[', b"[]", MIB, b"]}")),
    "unknown-labels-as-targets": posting(
        RECOVER, lambda: lists(b'{"targets":[', b'"a"', MIB, b"]}")
    ),
    "different-targets": posting(
        RECOVER, lambda: json.dumps({"targets": list(range(400_000))}).encode()
    ),
    "support-of-objects": posting(RECOVER, lambda: lists(b'{"support":[', b"{}", MIB, b"]}")),
    "objects-as-questions": posting(
        CERTIFICATE, lambda: lists(b'{"questions":[', b"{}", MIB, b"]}")
    ),
    "a-question-of-a-million-fields": posting(
        CERTIFICATE, lambda: named(b'{"questions":[{', 1_000_000, b"1", b"}]}")
    ),
    "a-million-options": posting(RECOVER, lambda: named(b'{"options":{', 1_000_000, b"1", b"}}")),
    "a-million-wrong-options": posting(
        RECOVER, lambda: named(b'{"options":{', 1_000_000, b"[]", b"}}")
    ),
    "one-field-a-million-times": posting(RECOVER, lambda: lists(b"{", b'"eta":0', 1_000_000, b"}")),
    "deep-lists": posting(RECOVER, lambda: b'{"targets":' + MIB * b"[" + MIB * b"]" + b"}"),
    "deep-objects": posting(
        RECOVER, lambda: b'{"options":' + MIB // 4 * b'{"a":' + b"1" + MIB // 4 * b"}" + b"}"
    ),
    "a-huge-fraction": posting(RECOVER, lambda: b'{"eta":0.' + 3 * MIB * b"9" + b"}"),
    "a-huge-exponent": posting(RECOVER, lambda: b'{"eta":1e' + MIB * b"9" + b"}"),
    "a-long-label": posting(RECOVER, lambda: b'{"targets":["' + 3 * MIB * b"a" + b'"]}'),
    "a-long-field": posting(RECOVER, lambda: b'{"' + 3 * MIB * b"a" + b'":1}'),
    "no-utf-8": posting(RECOVER, lambda: b'{"method":"' + 3 * MIB * b"\xff" + b'"}'),
    "gzip": posting(RECOVER, lambda: zipped(objects()), GZIP),
    "the-current-round": posting("/recover", objects),
    "no-round": posting("/rounds/none/recover", objects),
    "open-labels-without-a-key": posting(
        "/rounds", lambda: lists(b'{"protocol":"grr","epsilon":1,"items":[', b'"a"', MIB, b"]}")
    ),
    "tickets-without-a-key": posting(
        "/rounds/{round}/tickets", lambda: named(b"{", 300_000, b"1", b"}")
    ),
    "close-without-a-key": posting("/rounds/{round}/close", objects),
    "many-at-once": posting(
        RECOVER, lambda: lists(b'{"targets":[', b"{}", MIB // 8, b"]}"), connections=40
    ),
}


def deleting(round: str) -> Attack:
    sent = request(f"DELETE /rounds/{round}", "Content-Type: application/json", body=objects())

    async def attack(attackers: Attackers) -> None:
        await attackers.keep_busy(4, attackers.sends(sent), pause=0.3)

    return attack


@variations(
    {
        "objects-options-and-depth": every(
            OPTIONS["objects-as-targets"],
            OPTIONS["a-million-wrong-options"],
            OPTIONS["deep-lists"],
            deleting,
        )
    },
    {**OPTIONS, "delete-with-a-body": deleting},
)
def test_no_json_of_a_call_stops_the_server(new_target: NewTarget, attack: MakeAttack) -> None:
    target = new_target()
    assert_alive(besiege(target, attack(target.grr_round(100, 16))))


def asking_much(each: bytes) -> MakeAttack:
    """Ask for recoveries with as many targets as 1 MiB holds, many at a time."""

    def make(round: str) -> Attack:
        body = lists(b'{"targets":[', each, (MIB - 30) // (len(each) + 1), b"]}")

        async def attack(attackers: Attackers) -> None:
            await attackers.keep_busy(400, attackers.sends(post(RECOVER.format(round=round), body)))

        return attack

    return make


@variations({"labels": asking_much(b'"a"')}, {"indices": asking_much(b"999")})
def test_no_large_requests_that_wait_stop_the_server(
    new_target: NewTarget, attack: MakeAttack
) -> None:
    """Of a round of 100,000 items, which may be asked much: decoded, a request takes many times its
    text.
    """
    target = new_target()
    assert_alive(besiege(target, attack(target.grr_round(1000, 100_000))))


def blanks(
    path: str,
    connections: int,
    *headers: str,
    method: str = "POST",
    first: bytes = b"",
    times: int = 1,
    whole: bool = True,
) -> MakeAttack:
    """Send 8 MiB, blanks but for the first bytes, and read no answer; `times` one after another, or
    less one byte.
    """

    def make(round: str) -> Attack:
        kind = [] if PACKED in headers else ["Content-Type: application/json"]
        line = f"{method} {path.format(round=round)}"
        head = request(line, *kind, *headers, length=8 * MIB + len(first), close=False)
        pieces = times * [head + first, *(8 * [MIB * b" "])]
        if not whole:
            pieces[-1] = pieces[-1][:-1]

        async def attack(attackers: Attackers) -> None:
            await attackers.keep_busy(connections, attackers.sends(*pieces, read=False), small=True)

        return attack

    return make


def too_large(round: str) -> Attack:
    """Say that 64 MiB come, send some, and do not read that they are too many."""
    head = request(
        f"POST /rounds/{round}/reports",
        "Content-Type: application/json",
        length=64 * MIB,
        close=False,
    )

    async def attack(attackers: Attackers) -> None:
        await attackers.keep_busy(100, attackers.sends(head, 256 * b" ", read=False))

    return attack


TO_A_ROUND = blanks(REPORTS, 40, times=20)
TO_NO_ROUND = blanks("/rounds/none/reports", 40, times=20)
LARGE_ANSWERS = blanks(RECOVER, 4, first=b"{}", times=5)
LONG_PATH = f"/rounds/{60_000 * 'a'}"


@variations(
    {"unread": every(TO_A_ROUND, TO_NO_ROUND, LARGE_ANSWERS)},
    {
        "one": blanks("/rounds/none/reports", 1),
        "many-pipelined": blanks("/rounds/none/reports", 20, times=50),
        "to-a-round": TO_A_ROUND,
        "packed": blanks(REPORTS, 40, PACKED, times=20),
        "to-no-round": TO_NO_ROUND,
        "large-answers": LARGE_ANSWERS,
        "answers-as-long-as-paths": blanks(f"{LONG_PATH}/reports", 40, method="PUT", times=10),
        "unfinished": blanks("/rounds/none/reports", 40, whole=False),
        "with-expect": blanks("/rounds/none/reports", 40, "Expect: 100-continue"),
        "too-large-and-unread": too_large,
    },
)
def test_no_blanks_without_a_reader_stop_the_server(
    new_target: NewTarget, attack: MakeAttack
) -> None:
    """The round has 100,000 items, so that one of its answers is megabytes."""
    target = new_target()
    assert_alive(besiege(target, attack(target.grr_round(100, 100_000))))


def chunked(
    path: str, pieces: Callable[[], list[bytes]], *headers: str, connections: int = 4
) -> MakeAttack:
    """Post a body in these pieces of a chunked encoding, as they are on the wire."""

    def make(round: str) -> Attack:
        head = request(
            f"POST {path.format(round=round)}",
            "Content-Type: application/json",
            "Transfer-Encoding: chunked",
            *headers,
        )
        sent = pieces()

        async def attack(attackers: Attackers) -> None:
            await attackers.keep_busy(connections, attackers.sends(head, *sent), pause=0.3)

        return attack

    return make


def getting(body: Callable[[], bytes]) -> MakeAttack:
    """Send a gzip'd body with GET."""

    def make(round: str) -> Attack:
        sent = request(
            f"GET /rounds/{round}/frequencies", GZIP, "Content-Type: application/json", body=body()
        )

        async def attack(attackers: Attackers) -> None:
            await attackers.keep_busy(20, attackers.sends(sent))

        return attack

    return make


def empty_lists() -> bytes:
    """61 KiB that say 63 MB, and gigabytes as objects."""
    return zipped(lists(b'{"reports":[', b"[]", 21_000_000, b"]}"))


def bomb() -> bytes:
    return zipped(64 * MIB * b" ")


GZIPPED: dict[str, MakeAttack] = {
    "empty-lists": posting(REPORTS, empty_lists, GZIP),
    "many-empty-lists": posting(REPORTS, empty_lists, GZIP, connections=60),
    "lists-in-lists": posting(
        REPORTS, lambda: zipped(lists(b'{"reports":[', b"[[[]]]", 9_000_000, b"]}")), GZIP
    ),
    "strings": posting(
        REPORTS, lambda: zipped(lists(b'{"reports":[', b'""', 20_000_000, b"]}")), GZIP
    ),
    "integers": posting(
        REPORTS, lambda: zipped(lists(b'{"reports":[', b"1", 33_000_000, b"]}")), GZIP
    ),
    "one-field": posting(
        REPORTS, lambda: zipped(lists(b"{", b'"reports":[]', 4_000_000, b"}")), GZIP
    ),
    "packed": posting(REPORTS, lambda: zipped(60 * MIB * b"\0"), GZIP, PACKED),
    "bomb-to-no-round": posting("/rounds/none/reports", bomb, GZIP, connections=40),
    "bomb-to-recover": posting(RECOVER, bomb, GZIP, connections=40),
    "bomb-too-large": posting(REPORTS, lambda: zipped(300 * MIB * b" "), GZIP, connections=40),
    "bomb-in-bomb": posting(
        REPORTS, lambda: zipped(zipped(300 * MIB * b" ")), GZIP, connections=40
    ),
    "bomb-by-get": getting(bomb),
    "many-members": posting(REPORTS, lambda: 50_000 * zipped(b" "), GZIP),
    "cut-off": posting(REPORTS, lambda: bomb()[:-9], GZIP, connections=40),
    "chunks-of-one-byte": chunked(REPORTS, lambda: [1_000_000 * b"1\r\n \r\n", b"0\r\n\r\n"]),
    "chunk-extensions": chunked(REPORTS, lambda: 1000 * [b"1;" + 16384 * b"x" + b"\r\n \r\n"]),
    "chunk-size-of-zeros": chunked(REPORTS, lambda: [*(200 * [65536 * b"0"])], connections=20),
    "trailer-without-end": chunked(
        REPORTS, lambda: [b"0\r\nX: ", *(200 * [65536 * b"x"])], connections=20
    ),
}


@variations(
    {"empty-lists-and-chunks": every(GZIPPED["empty-lists"], GZIPPED["chunks-of-one-byte"])},
    GZIPPED,
)
def test_no_small_body_that_grows_stops_the_server(
    new_target: NewTarget, attack: MakeAttack
) -> None:
    target = new_target()
    assert_alive(besiege(target, attack(target.open_round("grr", 16))))

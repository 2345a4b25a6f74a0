"""Bodies in any pieces and compression, against gzip: passed on whole or rejected, and released."""

import asyncio
import gzip
import zlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzzing import SECONDS, property_settings, repeat, tried

from ldprecover.protocols.wire import MEDIA_TYPE
from ldprecover_server.errors import ServiceError
from ldprecover_server.http.bodies import JSON, Body, BodyLimit
from ldprecover_server.limits import BodyMemory

SENT, DECODED, MAX_TOTAL = 1_000, 2_500, 10_000
"""What one body may have as sent and decoded, and all together."""


def gunzipped(body: bytes) -> bytes | None:
    """Return the content of one whole gzip member, or None for any other bytes."""
    try:
        member = zlib.decompressobj(wbits=31)
        decoded = member.decompress(body)
    except zlib.error:
        return None
    return decoded if member.eof and not member.unused_data else None


def zipped(data: bytes, level: int) -> bytes:
    return gzip.compress(data, level, mtime=0)


plain = st.binary(max_size=200) | st.builds(
    lambda byte, n: bytes([byte]) * n, st.integers(0, 255), st.integers(0, 3_000)
)
members = st.builds(zipped, plain, st.integers(0, 9))


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Return gzip members, whole, cut, joined or changed; or other bytes."""
    body = bytearray(draw(members | members | plain))
    how = draw(st.sampled_from(["whole", "whole", "cut", "joined", "changed", "trailed"]))
    if how == "cut":
        del body[draw(st.integers(0, len(body))) :]
    elif how == "joined":
        body += draw(members)
    elif how == "trailed":
        body += draw(st.binary(min_size=1, max_size=8))
    elif how == "changed" and body:
        for _ in range(draw(st.integers(1, 4))):
            body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body)


@st.composite
def pieces(draw: st.DrawFn) -> list[bytes]:
    """Return a body in pieces, some of them empty."""
    body = draw(bodies())
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=5)))
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


encodings = st.sampled_from(
    [b"gzip", b"gzip", b"gzip", b"GZIP ", b"identity", None, b"deflate", b"gzip, gzip", b"\xff"]
)
types = st.sampled_from(
    [
        MEDIA_TYPE.encode(),
        MEDIA_TYPE.encode(),
        b"application/json; charset=utf-8",
        b"text/plain",
        None,
    ]
)
lengths = st.sampled_from([None, None, b"0", b"1000", b"1001", b"-1", b"9" * 30, b"\xb2", b"x"])


@pytest.mark.timeout(300 + 2 * SECONDS)
def test_any_body_is_decompressed_or_rejected() -> None:
    memory = BodyMemory(MAX_TOTAL)

    @property_settings(400)
    @given(st.sampled_from([DECODED, SENT]), pieces(), encodings, types, lengths, st.booleans())
    @example(DECODED, [zipped(bytes(2_500), 9)], b"gzip", b"application/json", None, False)
    @example(DECODED, [zipped(bytes(2_501), 9)], b"gzip", b"application/json", None, False)
    @example(SENT, [zipped(bytes(1_001), 9)], b"gzip", b"application/json", None, False)
    @example(
        DECODED, [zipped(bytes(10_000_000), 9)[:900]], b"gzip", b"application/json", None, False
    )
    def check(
        decoded: int,
        parts: list[bytes],
        encoding: bytes | None,
        media_type: bytes | None,
        length: bytes | None,
        disconnects: bool,
    ) -> None:
        named = {
            b"content-encoding": encoding,
            b"content-type": media_type,
            b"content-length": length,
        }
        headers = [(name, value) for name, value in named.items() if value is not None]
        if length is None:
            headers.append((b"transfer-encoding", b"chunked"))
        arriving = [*parts[:-1], None] if disconnects else list(parts)
        messages = iter(
            {"type": "http.disconnect"}
            if part is None
            else {"type": "http.request", "body": part, "more_body": i < len(arriving) - 1}
            for i, part in enumerate(arriving)
        )

        async def receive() -> Any:
            return next(messages)

        body = Body(memory, {"type": "http", "headers": headers}, receive)
        limit = BodyLimit(SENT, decoded, anonymous=False)
        given_on: bytes | None = None
        status = None
        try:
            given_on = bytes(asyncio.run(body.read(limit, (JSON, MEDIA_TYPE))))
            assert memory.budget.reserved <= MAX_TOTAL
        except ServiceError as refusal:
            status = refusal.type.status
        body.release()
        tried["bodies"][str(status or "handed on")] += 1
        assert memory.budget.reserved == 0
        assert status in (None, 400, 408, 413, 415)
        assert status != 408 or disconnects
        if given_on is not None:
            whole = b"".join(parts)
            zipped_body = encoding is not None and encoding.strip().lower() == b"gzip" and whole
            assert given_on == (gunzipped(whole) if zipped_body else whole)
            assert len(whole) <= SENT
            assert len(given_on) <= decoded

    repeat(check)

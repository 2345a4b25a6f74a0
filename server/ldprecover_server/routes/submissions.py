"""The hot path: one submission in, answered once it is durable.

A plain Starlette endpoint with its own decoding: a framework's validation of every field would
cost more than all the rest. The API reference describes it by hand (`openapi`).
"""

import re
import secrets

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from ldprecover import FrequencyOracle, ReportError, wire
from ldprecover._types import Reports
from ldprecover_server.bodies import BIG
from ldprecover_server.errors import BadRequestError
from ldprecover_server.routes.common import json, round_in_path, service_of

__all__ = ["submit"]

_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,64}")
_one_at_a_time = CapacityLimiter(1)  # decoded JSON is many times its text: one large body in memory so at a time


async def submit(request: Request) -> Response:
    """Take one submission of one or more reports."""
    service = service_of(request)
    identifier = round_in_path(request)
    round = service.known_round(identifier)
    if round is None:
        round = await to_thread.run_sync(service.find_round, identifier)
    key = _idempotency_key(request.headers.getlist("idempotency-key"))
    body = await request.body()
    packed = request.headers.get("content-type", "").partition(";")[0].strip().lower() == wire.MEDIA_TYPE
    if len(body) > BIG:
        reports = await to_thread.run_sync(_decode, round.oracle, body, packed, limiter=_one_at_a_time)
    else:
        reports = _decode(round.oracle, body, packed)
    duplicate = await service.submit(round, key, reports)
    return json({"round": round.id, "accepted": len(reports), "duplicate": duplicate}, 202)


def _idempotency_key(values: list[str]) -> str:
    if not values:
        return secrets.token_hex(16)
    if len(values) > 1 or not _IDEMPOTENCY_KEY.fullmatch(values[0]):
        raise BadRequestError("Idempotency-Key must be given once, of 1 to 64 visible ASCII characters")
    return values[0]


def _decode(oracle: FrequencyOracle, body: bytes, packed: bool) -> Reports:
    if packed:
        return wire.unpack(oracle, body)
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReportError(f"the body is not JSON: {error}") from error
    return wire.from_json(oracle, decoded)

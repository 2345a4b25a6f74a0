"""The hot path: one submission in, answered once it is durable.

A small ASGI application of its own, in front of the framework: what a framework does for every
request costs more than decoding, counting and storing a report together. The API reference
describes it by hand (`openapi`).
"""

import logging
import re
import secrets
from collections.abc import Mapping

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.types import Receive, Scope, Send

from ldprecover import FrequencyOracle, LDPRecoverError, ReportError, wire
from ldprecover_server.access.access import ANYONE
from ldprecover_server.errors import BadRequestError, ServiceError, TooManyReportsError
from ldprecover_server.http.bodies import BIG, media_type
from ldprecover_server.http.problems import INTERNAL_ERROR, METHOD_NOT_ALLOWED, answer, refuse
from ldprecover_server.refusals import DUPLICATE
from ldprecover_server.service import Service
from ldprecover_server.store import CURRENT

__all__ = ["Submissions"]

_log = logging.getLogger(__name__)

_PATH = re.compile(r"(?:/rounds/([^/]+))?/reports")
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,64}")


class Submissions:
    """ASGI application at /reports and /rounds/{round}/reports; its receive gives the body in one message."""

    def __init__(self, service: Service) -> None:
        self._service = service
        # Decoded JSON is many times its text, so of large bodies one at a time is decoded.
        self._one_at_a_time = CapacityLimiter(1)

    @staticmethod
    def takes(path: str) -> bool:
        """Tell whether a path is one of these."""
        return path.endswith("/reports") and _PATH.fullmatch(path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route_path"] = "/reports" if scope["path"] == "/reports" else "/rounds/{round}/reports"
        if scope["method"] != "POST":
            await answer(METHOD_NOT_ALLOWED, f"{scope['method']} {scope['path']}", {"Allow": "POST"})(
                scope, receive, send
            )
            return
        try:
            accepted = await self._submit(scope, receive)
        except (ServiceError, LDPRecoverError) as error:
            await refuse(error)(scope, receive, send)
        except Exception:  # noqa: BLE001
            _log.exception("a submission failed")
            await answer(INTERNAL_ERROR)(scope, receive, send)
        else:
            length = str(len(accepted)).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", length)]
            await send({"type": "http.response.start", "status": 202, "headers": headers})
            await send({"type": "http.response.body", "body": accepted})

    async def _submit(self, scope: Scope, receive: Receive) -> bytes:
        matched = _PATH.fullmatch(scope["path"])
        identifier = (matched and matched[1]) or CURRENT
        service = self._service
        round = service.known_round(identifier)
        if round is None:
            round = await to_thread.run_sync(service.find_round, identifier)
        scope["round_seq"] = round.seq
        headers = dict(scope["headers"])
        authorization = _given_once(scope, headers, b"authorization")
        sender = ANYONE
        if authorization is not None or round.access != "open":
            sender = await service.access.require_sender(round.id, round.access, authorization)
        key = sender.submission_key or _idempotency_key(_given_once(scope, headers, b"idempotency-key"))
        packed = media_type(headers) == wire.MEDIA_TYPE
        body: bytes | bytearray = (await receive())["body"]
        if len(body) > BIG:
            reports = await to_thread.run_sync(_checked, round.oracle, body, packed, limiter=self._one_at_a_time)
        else:
            reports = _checked(round.oracle, body, packed)
        accepted = len(reports) // round.oracle.report_size
        if accepted > round.max_reports:
            raise TooManyReportsError(
                f"a submission to this round holds at most {round.max_reports} reports, and this one has {accepted}"
            )
        service.access.admit(sender, accepted)
        duplicate = await service.submit(round, key, reports)
        if duplicate:
            service.refusals.count(round.seq, DUPLICATE)
        return msgspec.json.encode({"round": round.id, "accepted": accepted, "duplicate": duplicate})


def _given_once(scope: Scope, headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    if value is None:
        return None
    if len(headers) < len(scope["headers"]) and sum(name == given for given, _ in scope["headers"]) > 1:
        raise BadRequestError(f"the header {name.decode().title()} must be given once")
    return value.decode("latin-1")


def _idempotency_key(value: str | None) -> str:
    if value is None:
        return secrets.token_hex(16)
    if not _IDEMPOTENCY_KEY.fullmatch(value):
        raise BadRequestError("Idempotency-Key must be of 1 to 64 visible ASCII characters")
    return value


def _checked(oracle: FrequencyOracle, body: bytes | bytearray, packed: bool) -> bytes | bytearray:
    """Return the reports of a body, packed. Raises ReportError."""
    if packed:
        wire.unpack(oracle, body)
        return body
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReportError(f"the body is not JSON: {error}") from error
    return wire.pack(wire.from_json(oracle, decoded))

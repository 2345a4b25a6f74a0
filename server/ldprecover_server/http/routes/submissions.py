"""The hot path: one submission in, answered once it is durable.

A small ASGI application in front of the framework, whose work for every request costs more than
decoding, counting and storing a report together. `openapi` describes it in the API reference.
"""

import functools
import logging
import re
import secrets

from anyio import to_thread
from starlette.types import Receive, Scope, Send

from ldprecover import FrequencyOracle, LDPRecoverError
from ldprecover.protocols import wire
from ldprecover_interface.submissions import Accepted
from ldprecover_server.access.access import ANYONE, Sender
from ldprecover_server.errors import (
    InternalError,
    InvalidParameterError,
    MethodNotAllowedError,
    ServiceError,
    as_service_error,
)
from ldprecover_server.http.bodies import JSON, THREAD_BYTES, Body, BodyLimit
from ldprecover_server.http.decoding import ReportDecoder
from ldprecover_server.http.dependencies import Services
from ldprecover_server.http.problems import ProblemResponse
from ldprecover_server.storage import CURRENT, StoredRound

_log = logging.getLogger(__name__)

_SUBMISSION_KEY = re.compile(rb"[\x21-\x7e]{1,64}")
_LIMITS = 1024
_TYPES = (JSON, wire.MEDIA_TYPE)


class SubmissionEndpoint:
    """The ASGI application that answers submissions to the round in the path."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._limits: dict[
            tuple[int, bool, bool, bool], BodyLimit
        ] = {}  # of the rounds that reports came for last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = Body(self._services.limits.bodies, scope, receive)
        try:
            answer = await self._submit(scope, body)
        except (ServiceError, LDPRecoverError) as error:
            await ProblemResponse(error)(scope, receive, send)
        except Exception:  # noqa: BLE001
            _log.exception("a submission failed")
            await ProblemResponse(InternalError())(scope, receive, send)
        else:
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(answer)),
            ]
            await send({"type": "http.response.start", "status": 202, "headers": headers})
            await send({"type": "http.response.body", "body": answer})

    async def _submit(self, scope: Scope, body: Body) -> bytes:
        if scope["method"] != "POST":
            raise MethodNotAllowedError(f"{scope['method']} {scope['path'][:200]}", "POST")
        if scope["query_string"]:
            raise InvalidParameterError("reports have no query parameters")
        rounds = self._services.rounds
        identifier = scope["path_params"].get("round", CURRENT)
        cached = rounds.cached(identifier)
        look_up = self._services.limits.submitting.run
        round = cached
        if round is None:
            round = await look_up(rounds.find, identifier)
        try:
            return await self._submit_to(round, body)
        except (ServiceError, LDPRecoverError) as error:
            # After a 5xx the submission is sent again anyway.
            is_final = as_service_error(error).type.status < 500
            if is_final and cached is not None and identifier != round.id:
                await look_up(rounds.require_current, identifier, round)
            raise

    async def _submit_to(self, round: StoredRound, body: Body) -> bytes:
        services = self._services
        # Authenticate first.
        headers = body.headers
        authorization = headers.get(b"authorization")
        sender = ANYONE
        if authorization is not None or round.access != "open":
            value = None if authorization is None else authorization.decode("latin-1")
            sender = await services.access.require_sender(
                round.form or round.id, round.access, value, round.position, round.form_size
            )
        key = sender.submission_key or _submission_key(headers.get(b"idempotency-key"))
        # Then read at most what such a sender may send.
        packed = body.media_type == wire.MEDIA_TYPE
        try:
            sent = await body.read(self._limit(round, sender, packed), _TYPES)
            if len(sent) > THREAD_BYTES:
                reports = await to_thread.run_sync(
                    decode_reports,
                    *(round.oracle, sent, packed),
                    limiter=services.limits.bodies.threads,
                )
            else:
                reports = decode_reports(round.oracle, sent, packed)
            del sent
            accepted, duplicate = await services.submissions.submit(round, sender, key, reports)
        finally:
            body.release()
        return _answer(round.id, accepted, duplicate)

    def _limit(self, round: StoredRound, sender: Sender, packed: bool) -> BodyLimit:
        is_anyone = sender is ANYONE
        place = (round.seq, is_anyone, sender.key is None, packed)
        limit = self._limits.get(place)
        if limit is None:
            largest = self._services.submissions.max_body_bytes(round, sender, packed)
            why = "; with a report key it may be larger" if is_anyone else ""
            if sender.key is not None:
                max_reports = self._services.submissions.max_reports(round.oracle)
                why = f": a submission to this round holds at most {max_reports} reports"
            limit = BodyLimit(
                min(largest, self._services.limits.max_body_bytes),
                largest,
                sender.key is None,
                why,
            )
            if len(self._limits) >= _LIMITS:
                self._limits.clear()
            self._limits[place] = limit
        return limit


@functools.lru_cache(maxsize=256)
def _answer(round_id: str, accepted: int, duplicate: bool) -> bytes:
    return Accepted(round=round_id, accepted=accepted, duplicate=duplicate).to_json()


def _submission_key(value: bytes | None) -> str:
    if value is None:
        return secrets.token_hex(16)
    if not _SUBMISSION_KEY.fullmatch(value):
        raise InvalidParameterError("Idempotency-Key must be of 1 to 64 visible ASCII characters")
    return value.decode()


@functools.lru_cache(maxsize=256)
def _decoder(oracle: FrequencyOracle) -> ReportDecoder:
    return ReportDecoder(oracle)


def decode_reports(
    oracle: FrequencyOracle, body: bytes | bytearray, packed: bool
) -> bytes | bytearray:
    """Return the reports of a body, packed. Raises ReportError."""
    if packed:
        oracle.wire.check_submission(oracle.wire.unpack(body))
        return body
    return _decoder(oracle)(body)

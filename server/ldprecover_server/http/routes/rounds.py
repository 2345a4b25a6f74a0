"""Rounds: opening, listing and reading them, closing, deleting, and their tickets."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic_core import from_json, to_json
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ldprecover.protocols import own_parameters
from ldprecover.rounds.parameters import TEXTS
from ldprecover_interface import paths
from ldprecover_interface.export import Export
from ldprecover_interface.rounds import (
    NewRound,
    NewTickets,
    Parameters,
    RoundList,
    RoundStatus,
    RoundSummary,
    Stats,
)
from ldprecover_server.errors import (
    InvalidParameterError,
    InvalidRequestError,
    NameTakenError,
    NotNextError,
    PluginNotLoadedError,
    ReportsGoneError,
    RoundDamagedError,
    RoundNotFoundError,
    RoundOfFormError,
)
from ldprecover_server.http.bodies import body_schema, json_body
from ldprecover_server.http.dependencies import (
    KEY_IF_NEEDED,
    Admin,
    Anyone,
    Caller,
    Reader,
    RoundReference,
)
from ldprecover_server.http.problems import ADMIN, BODY, STORAGE, problems
from ldprecover_server.http.responses import json_response, not_modified
from ldprecover_server.storage import StoredRound

router = APIRouter(tags=["rounds"])

SMALL = 4096  # bytes; enough for a body of a few numbers
_TICKETS_PER_PIECE = 1000
_STORED = (
    *("id", "name", "protocol", "epsilon", "domain_size", "digest"),
    *("practice", "form", "access", "read_access", "retention"),
    *("series", "number", "closes_at"),
    *TEXTS,
)
"""Fields that a response copies from the stored round."""
Before = Annotated[
    str | None, Query(max_length=64, description="Id of the last one of the previous page.")
]
_END_ROUND = problems(RoundNotFoundError, RoundOfFormError, *ADMIN, *STORAGE)
_FOREVER = "public, max-age=31536000, immutable"


@router.post(
    paths.ROUNDS,
    status_code=201,
    response_model=RoundStatus,
    responses=problems(
        *ADMIN,
        *STORAGE,
        *BODY,
        NameTakenError,
        NotNextError,
        ReportsGoneError,
        InvalidParameterError,
    ),
    openapi_extra=body_schema(NewRound),
)
async def open_round(request: Request, caller: Admin) -> Response:
    """Open a round; its parameters never change."""

    def open() -> Response:
        stored = caller.services.rounds.open(new, caller.key_name)
        return round_response(caller, stored, 201, location(request, paths.ROUNDS, stored.id))

    async with json_body(request, caller, NewRound, caller.services.limits.max_body_bytes) as new:
        return await caller.respond(open)


def location(request: Request, path: str, id: str) -> dict[str, str]:
    """Return the header Location of a new round or form."""
    return {"Location": f"{request.scope.get('root_path', '')}{path}/{id}"}


@router.get(
    paths.ROUNDS,
    response_model=RoundList,
    responses=problems(RoundNotFoundError, InvalidRequestError, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def list_rounds(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of rounds.")] = 100,
    before: Before = None,
) -> Response:
    """List rounds without their items; the first was opened last."""

    def read() -> RoundList:
        page = caller.services.rounds.page(limit, before)
        return RoundList.model_construct(rounds=summaries(caller, page))

    return json_response(await caller.run(read))


@router.get(
    paths.ROUND,
    response_model=RoundStatus,
    responses=problems(RoundNotFoundError, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def get_round(round: RoundReference, caller: Reader) -> Response:
    """Return a round: its parameters, its state, its reports counted, and its verdict."""
    return await caller.respond(lambda: round_response(caller, caller.services.rounds.find(round)))


@router.get(
    paths.ROUND + paths.PARAMETERS,
    response_model=Parameters,
    responses=problems(RoundNotFoundError, *STORAGE),
)
async def get_parameters(request: Request, round: RoundReference, caller: Anyone) -> Response:
    """Return the immutable part of a round; by id it may be cached for ever."""
    rounds = caller.services.rounds

    def respond() -> Response:
        stored = rounds.find(round)
        headers = {
            "ETag": f'"{stored.digest}-{stored.id}"',
            # A name may later belong to another round, and `current` changes; an id stays.
            "Cache-Control": _FOREVER if round == stored.id else "no-cache",
        }
        if unchanged := not_modified(request, headers):
            return unchanged
        # As decimal digits: JSON readers that use doubles lose bits of 64-bit integers.
        thresholds = {name: str(value) for name, value in stored.oracle.thresholds.items()}
        parameters = Parameters.model_construct(**_head(stored), thresholds=thresholds, items=[])
        return json_response(parameters, headers=headers, labels=rounds.labels(stored))

    return await caller.respond(respond)


@router.post(paths.ROUND + paths.CLOSE, response_model=RoundStatus, responses=_END_ROUND)
async def close_round(request: Request, round: RoundReference, caller: Admin) -> Response:
    """Close a round: it accepts no reports after the response."""
    close = caller.services.rounds.close
    response = await caller.respond(lambda: round_response(caller, close(round, caller.key_name)))
    request.app.state.verdicts.wake()
    return response


@router.post(
    paths.ROUND + paths.TICKETS,
    responses=problems(
        *ADMIN, *STORAGE, *BODY, RoundNotFoundError, RoundOfFormError, InvalidParameterError
    ),
    response_class=PlainTextResponse,
    openapi_extra=body_schema(NewTickets),
)
async def mint_tickets(request: Request, round: RoundReference, caller: Admin) -> Response:
    """Mint single-use tickets, one a line; they are not stored, and not shown again."""
    return await stream_tickets(request, caller, caller.services.rounds.mint, round)


async def stream_tickets(
    request: Request, caller: Caller, mint: Callable[..., Iterator[str]], reference: str
) -> Response:
    """Return the tickets that `mint` makes for a round or a form, one a line."""
    async with json_body(request, caller, NewTickets, SMALL) as new:
        tickets = await caller.run(mint, reference, new.count, caller.key_name)
    lines = (f"{ticket}\n" for ticket in tickets)
    pieces = iter(lambda: "".join(itertools.islice(lines, _TICKETS_PER_PIECE)), "")
    return StreamingResponse(pieces, media_type="text/plain", headers={"Cache-Control": "no-store"})


@router.delete(paths.ROUND, status_code=204, responses=_END_ROUND)
async def delete_round(round: RoundReference, caller: Admin) -> None:
    """Delete a round and all its reports."""
    await caller.run(caller.services.rounds.delete, round, caller.key_name)


@router.get(
    paths.ROUND + paths.STATS,
    responses=problems(RoundNotFoundError, *ADMIN, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def get_stats(round: RoundReference, caller: Reader) -> Stats:
    """Return the number of a round's reports; it is shorter than the round with its items."""
    rounds = caller.services.rounds

    def read() -> Stats:
        stored = rounds.readable(round, caller.key)
        return Stats(round=stored.id, reports=rounds.tally(stored).n)

    return await caller.run(read)


@router.get(
    paths.ROUND + paths.EXPORT,
    response_model=Export,
    responses=problems(RoundNotFoundError, *ADMIN, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def export_round(round: RoundReference, caller: Reader) -> Response:
    """Return a round with its tally, to estimate and recover without the server."""

    def export() -> Response:
        # As written, not through the model: files keep the order of their fields.
        body = to_json(caller.services.rounds.export(round, caller.key).to_dict())
        return Response(body, media_type="application/json")

    return await caller.respond(export)


def _head(stored: StoredRound) -> dict[str, Any]:
    """Return a round's parameters; without its protocol, or if they are damaged, some are null."""
    head: dict[str, Any] = {name: getattr(stored, name) for name in _STORED}
    head |= dict.fromkeys((*own_parameters(), "digits", "p", "q"))
    with suppress(PluginNotLoadedError, RoundDamagedError):
        oracle = stored.oracle
        head |= {**oracle.own, "digits": oracle.derived.get("digits"), "p": oracle.p, "q": oracle.q}
    return head


def summaries(caller: Caller, rounds: Sequence[StoredRound]) -> list[RoundSummary]:
    """Return rounds without their labels; GET /rounds/{id} returns up to 100,000 of them."""
    verdicts = caller.services.rounds.verdicts(rounds, caller.key)
    return [
        RoundSummary.model_construct(**_state(*each)) for each in zip(rounds, verdicts, strict=True)
    ]


def _state(stored: StoredRound, verdict: str | None) -> dict[str, Any]:
    return _head(stored) | {
        **{name: getattr(stored, name) for name in ("state", "n", "opened_at", "closed_at")},
        "verdict": None if verdict is None else from_json(verdict),
    }


def round_response(
    caller: Caller,
    stored: StoredRound,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a round with its items, in a response."""
    rounds = caller.services.rounds
    (verdict,) = rounds.verdicts([stored], caller.key)
    message = RoundStatus.model_construct(**_state(stored, verdict), items=[])
    return json_response(message, status, headers, labels=rounds.labels(stored))

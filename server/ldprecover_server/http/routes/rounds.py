"""Opening, reading, closing and deleting rounds, and minting their tickets."""

import itertools
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ldprecover import ParameterError, RoundParameters
from ldprecover.items import canary_labels
from ldprecover.protocols import own_parameters
from ldprecover_interface import paths
from ldprecover_server.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    BusyError,
    ForbiddenError,
    InvalidParameterError,
    InvalidRequestError,
    MalformedBodyError,
    NameTakenError,
    QueueFullError,
    RoundNotFoundError,
    SeriesMismatchError,
    StoreUnavailableError,
    UnauthorizedError,
    UnsupportedMediaTypeError,
    UnsupportedTransferEncodingError,
)
from ldprecover_server.http.dependencies import (
    Admin,
    Anyone,
    Caller,
    Named,
    Services,
    described,
    get_services,
    read,
    set_aside,
)
from ldprecover_server.http.messages import (
    Export,
    NewRound,
    NewTickets,
    Parameters,
    Round,
    Rounds,
    RoundSummary,
    Stats,
)
from ldprecover_server.http.responses import json
from ldprecover_server.rejections import DUPLICATE
from ldprecover_server.retention import hours, words
from ldprecover_server.rounds import KnownRound
from ldprecover_server.storage import StoredRound, Unread

router = APIRouter(tags=["rounds"])

BODY = (
    BodyTooLargeError,
    BodyTimeoutError,
    MalformedBodyError,
    UnsupportedMediaTypeError,
    UnsupportedTransferEncodingError,
    InvalidRequestError,
    QueueFullError,
)
"""How a body may be refused, before what it says is looked at."""

_KEYED = (UnauthorizedError, ForbiddenError)
_STORE = (BusyError, StoreUnavailableError)
_SMALL = 4096  # bytes of a body that holds a number
_TICKETS_A_PIECE = 1000
_FOR_EVER = "public, max-age=31536000, immutable"


@router.post(
    paths.ROUNDS,
    **described(
        Round,
        *_KEYED,
        *_STORE,
        *BODY,
        NameTakenError,
        SeriesMismatchError,
        InvalidParameterError,
        takes=NewRound,
        status=201,
    ),
)
async def open_round(request: Request, caller: Admin) -> Response:
    """Open a round; its parameters never change."""
    services = get_services(request)
    new = await read(request, NewRound, services.settings.max_body_bytes, caller)
    if new is None:
        raise InvalidRequestError("the parameters of the round are missing", "body")
    stored, known = await caller.run(_open, services, new)
    return json(_round(stored, known), 201, {"Location": paths.round_path(stored.id)})


def _open(services: Services, new: NewRound) -> tuple[StoredRound, KnownRound]:
    if (new.items is None) == (new.domain_size is None):
        raise ParameterError("give either items or domain_size")
    items = (
        tuple(new.items) if new.items is not None else tuple(map(str, range(new.domain_size or 0)))
    )
    canaries = canary_labels(items, new.canaries)
    own = {name: getattr(new, name) for name in own_parameters()}
    parameters = RoundParameters.named(
        new.protocol,
        new.epsilon,
        items + canaries,
        own,
        canaries=range(len(items), len(items) + len(canaries)),
        quarantine=new.quarantine,
    )
    return services.rounds.open(
        new.name,
        parameters,
        access=new.access,
        read_access=new.read_access,
        retention=hours(new.retention),
        series=new.series,
    )


@router.get(paths.ROUNDS, **described(Rounds, RoundNotFoundError, InvalidRequestError, *_STORE))
async def list_rounds(
    request: Request,
    caller: Anyone,
    limit: Annotated[int, Query(ge=1, le=200, description="Rounds at most.")] = 100,
    before: Annotated[
        str | None, Query(max_length=64, description="Id of the round after which the page starts.")
    ] = None,
) -> Response:
    """List rounds, the one opened last first, without their items."""
    found = await caller.run(get_services(request).rounds.page, limit, before)
    # Up to 100,000 labels a round; whoever wants them asks for the round.
    return json(Rounds([RoundSummary(**_state(stored, known)) for stored, known in found]))


@router.get(paths.ROUND, **described(Round, RoundNotFoundError, *_STORE))
async def get_round(request: Request, round: Named, caller: Anyone) -> Response:
    """Return a round: parameters, state and the number of reports counted."""
    return await caller.run(lambda: json(_round(*get_services(request).rounds.get(round))))


@router.get(
    paths.ROUND + paths.PARAMETERS,
    **described(Parameters, RoundNotFoundError, *_STORE),
)
async def get_parameters(request: Request, round: Named, caller: Anyone) -> Response:
    """Return what never changes in a round; by id, cacheable for ever."""
    return await caller.run(_get_parameters, request, round)


def _get_parameters(request: Request, identifier: str) -> Response:
    stored, known = get_services(request).rounds.get(identifier)
    etag = f'"{known.parameters.digest}-{stored.id}"'
    # A name can come to mean another round, and `current` does; an id cannot.
    headers = {"ETag": etag, "Cache-Control": _FOR_EVER if identifier == stored.id else "no-cache"}
    given = {
        tag.strip().removeprefix("W/")
        for tag in request.headers.get("if-none-match", "").split(",")
    }
    if given & {etag, "*"}:
        return Response(status_code=304, headers=headers)
    # In digits: they exceed the integers that a double, and so many a reader of JSON, has.
    thresholds = {name: str(value) for name, value in known.oracle.thresholds.items()}
    parameters = Parameters(
        **_brief(stored, known), thresholds=thresholds, items=known.parameters.items
    )
    return json(parameters, headers=headers)


@router.post(paths.ROUND + paths.CLOSE, **described(Round, RoundNotFoundError, *_KEYED, *_STORE))
async def close_round(request: Request, round: Named, caller: Admin) -> Response:
    """Close a round: after the answer no report enters any more."""
    return await caller.run(lambda: json(_round(*get_services(request).rounds.close(round))))


@router.post(
    paths.ROUND + paths.TICKETS,
    **described(
        None, *_KEYED, *_STORE, *BODY, RoundNotFoundError, InvalidParameterError, takes=NewTickets
    ),
    response_class=PlainTextResponse,
)
async def mint_tickets(request: Request, round: Named, caller: Admin) -> Response:
    """Mint single-use tickets, one a line; they are not stored, and not shown again."""
    services = get_services(request)
    new = await read(request, NewTickets, _SMALL, caller)
    if new is None:
        raise InvalidRequestError("the number of tickets is missing", "body")
    tickets = await caller.run(_mint, services, round, new.count)
    lines = (f"{ticket}\n" for ticket in tickets)
    pieces = iter(lambda: "".join(itertools.islice(lines, _TICKETS_A_PIECE)), "")
    return StreamingResponse(pieces, media_type="text/plain", headers={"Cache-Control": "no-store"})


def _mint(services: Services, identifier: str, count: int) -> Iterator[str]:
    known = services.rounds.find(identifier)
    return services.access.mint(known.id, known.access, count)


@router.delete(paths.ROUND, **described(None, RoundNotFoundError, *_KEYED, *_STORE, status=204))
async def delete_round(request: Request, round: Named, caller: Admin) -> Response:
    """Delete a round and all its reports."""
    await caller.run(get_services(request).rounds.delete, round)
    return Response(status_code=204)


@router.get(paths.ROUND + paths.STATS, **described(Stats, RoundNotFoundError, *_KEYED, *_STORE))
async def get_stats(request: Request, round: Named, caller: Caller) -> Response:
    """Return what came of a round's submissions: reports, duplicates, and refusals by reason."""
    known, tally, aside, refused = await caller.run(
        get_services(request).results.stats, round, caller.key
    )
    duplicates = refused.pop(DUPLICATE, 0)
    return json(Stats(known.id, tally.n, set_aside(aside), duplicates, refused))


@router.get(paths.ROUND + paths.EXPORT, **described(Export, RoundNotFoundError, *_KEYED, *_STORE))
async def export_round(request: Request, round: Named, caller: Caller) -> Response:
    """Return a round's parameters, tally and checksum, to estimate and recover without the
    server.
    """
    return await caller.run(
        lambda: json(Export(**get_services(request).results.export(round, caller.key).to_dict()))
    )


def _brief(stored: StoredRound, known: KnownRound | Unread) -> dict[str, Any]:
    if isinstance(known, Unread):
        of_protocol = {**vars(known), "p": None, "q": None}
    else:
        parameters, oracle = known.parameters, known.oracle
        of_protocol = {
            "protocol": parameters.protocol,
            "epsilon": parameters.epsilon,
            "domain_size": oracle.domain_size,
            **parameters.own,
            "p": oracle.p,
            "q": oracle.q,
            "canaries": parameters.canaries,
            "quarantine": parameters.quarantine,
            "digest": parameters.digest,
        }
    return {
        "id": stored.id,
        "name": stored.name,
        **dict.fromkeys(own_parameters()),
        **of_protocol,
        "access": stored.access,
        "read_access": stored.read_access,
        "retention": words(stored.retention),
        "series": stored.series,
    }


def _state(stored: StoredRound, known: KnownRound | Unread) -> dict[str, Any]:
    return _brief(stored, known) | {
        "state": stored.state,
        "n": stored.n,
        "quarantined": set_aside(stored.quarantined),
        "opened_at": stored.opened_at,
        "closed_at": stored.closed_at,
    }


def _round(stored: StoredRound, known: KnownRound) -> Round:
    return Round(**_state(stored, known), items=known.parameters.items)

"""Opening, reading, closing and deleting rounds, and minting their tickets."""

import itertools
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ldprecover import ParameterError, RoundParameters
from ldprecover.export import RoundExport
from ldprecover_server.http.models import Export, NewRound, NewTickets, Parameters, Round, Rounds, Stats
from ldprecover_server.http.routes.common import Admin, BearerKey, json, problems, round_in_path, service_of
from ldprecover_server.refusals import DUPLICATE
from ldprecover_server.retention import hours, words
from ldprecover_server.service import OpenRound
from ldprecover_server.store import StoredRound

__all__ = ["router"]

router = APIRouter(prefix="/rounds", tags=["rounds"])

_TICKETS_A_PIECE = 1000
_FOR_EVER = "public, max-age=31536000, immutable"


@router.post(
    "", status_code=201, response_model=Round, dependencies=[Admin], responses=problems(401, 403, 409, 413, 415, 422)
)
def open_round(request: Request, new: NewRound) -> Response:
    """Open a round; its parameters never change."""
    if (new.items is None) == (new.domain_size is None):
        raise ParameterError("give either items or domain_size")
    if new.name == "current":
        raise ParameterError("name: 'current' means the round opened last and cannot be a name")
    items = tuple(new.items) if new.items is not None else tuple(map(str, range(new.domain_size or 0)))
    service = service_of(request)
    parameters = RoundParameters(new.protocol, new.epsilon, items, new.hash_range)
    stored = service.open_round(
        new.name,
        parameters,
        access=new.access,
        read_access=new.read_access,
        retention=hours(new.retention),
        series=new.series,
    )
    return json(_round(stored, service.parameters_of(stored)), 201, {"Location": f"/rounds/{stored.id}"})


@router.get("", response_model=Rounds, responses=problems(404, 422))
def list_rounds(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=200, description="Rounds at most.")] = 100,
    before: Annotated[str | None, Query(description="Id of the round after which the page starts.")] = None,
) -> Response:
    """List rounds, the one opened last first, without their items."""
    found = [_round(stored, known) for stored, known in service_of(request).list_rounds(limit, before)]
    for each in found:
        del each["items"]  # up to 100,000 labels a round; whoever wants them asks for the round
    return json({"rounds": found})


@router.get("/{round}", response_model=Round, responses=problems(404))
def get_round(request: Request) -> Response:
    """Return a round: parameters, state and the number of reports counted."""
    service = service_of(request)
    stored = service.store.round(round_in_path(request))
    return json(_round(stored, service.parameters_of(stored)))


@router.get(
    "/{round}/parameters",
    response_model=Parameters,
    responses={304: {"description": "The parameters have this ETag."}, **problems(404)},
)
def get_parameters(request: Request) -> Response:
    """Return what never changes in a round; by id, cacheable for ever."""
    service = service_of(request)
    identifier = round_in_path(request)
    stored = service.store.round(identifier)
    parameters = _parameters(stored, service.parameters_of(stored))
    etag = f'"{parameters["digest"]}-{stored.id}"'
    # A name can come to mean another round, and `current` does; an id cannot.
    headers = {"ETag": etag, "Cache-Control": _FOR_EVER if identifier == stored.id else "no-cache"}
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if known & {etag, "*"}:
        return Response(status_code=304, headers=headers)
    return json(parameters, headers=headers)


@router.post("/{round}/close", response_model=Round, dependencies=[Admin], responses=problems(401, 403, 404))
def close_round(request: Request) -> Response:
    """Close a round: after the answer no report enters any more."""
    service = service_of(request)
    stored = service.store.close_round(round_in_path(request))
    return json(_round(stored, service.parameters_of(stored)))


@router.post(
    "/{round}/tickets",
    dependencies=[Admin],
    response_class=PlainTextResponse,
    responses={
        200: {"description": "Tickets, one a line", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(401, 403, 404, 413, 415, 422),
    },
)
def mint_tickets(request: Request, new: NewTickets) -> Response:
    """Mint single-use tickets; they are not stored, and not shown again."""
    tickets = service_of(request).mint_tickets(round_in_path(request), new.count)
    lines = (f"{ticket}\n" for ticket in tickets)
    pieces = iter(lambda: "".join(itertools.islice(lines, _TICKETS_A_PIECE)), "")
    return StreamingResponse(pieces, media_type="text/plain", headers={"Cache-Control": "no-store"})


@router.delete("/{round}", status_code=204, dependencies=[Admin], responses=problems(401, 403, 404))
def delete_round(request: Request) -> Response:
    """Delete a round and all its reports."""
    service_of(request).delete_round(round_in_path(request))
    return Response(status_code=204)


@router.get("/{round}/stats", response_model=Stats, responses=problems(401, 403, 404))
def get_stats(request: Request, key: BearerKey) -> Response:
    """Return what came of a round's submissions: reports, duplicates, and refusals by reason."""
    round, tally, refused = service_of(request).stats(round_in_path(request), key)
    duplicates = refused.pop(DUPLICATE, 0)
    return json({"round": round.id, "reports": tally.n, "duplicates": duplicates, "refusals": refused})


@router.get("/{round}/export", response_model=Export, responses=problems(401, 403, 404))
def get_export(request: Request, key: BearerKey) -> Response:
    """Return a round's parameters, tally and checksum, to estimate and recover without the server."""
    service = service_of(request)
    round, tally = service.tally(round_in_path(request), key)
    stored = service.store.round(round.id)
    return json(RoundExport(round.id, stored.name, round.parameters, tally).to_dict())


def _parameters(stored: StoredRound, round: OpenRound) -> dict[str, Any]:
    parameters, oracle = round.parameters, round.oracle
    return {
        "id": stored.id,
        "name": stored.name,
        "protocol": parameters.protocol,
        "epsilon": parameters.epsilon,
        "items": parameters.items,
        "domain_size": oracle.domain_size,
        "hash_range": parameters.hash_range,
        "p": oracle.p,
        "q": oracle.q,
        "digest": parameters.digest,
        "access": stored.access,
        "read_access": stored.read_access,
        "retention": words(stored.retention),
        "series": stored.series,
    }


def _round(stored: StoredRound, known: OpenRound) -> dict[str, Any]:
    return _parameters(stored, known) | {
        "state": stored.state,
        "n": stored.n,
        "opened_at": stored.opened_at,
        "closed_at": stored.closed_at,
    }

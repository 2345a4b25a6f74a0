"""Opening, reading, closing and deleting rounds."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ldprecover import ParameterError, RoundParameters
from ldprecover_server.models import NewRound, Parameters, Round, Rounds
from ldprecover_server.routes.common import Admin, json, problems, round_in_path, service_of
from ldprecover_server.service import OpenRound
from ldprecover_server.store import StoredRound

__all__ = ["router"]

router = APIRouter(prefix="/rounds", tags=["rounds"])

_FOR_EVER = "public, max-age=31536000, immutable"


@router.post(
    "", status_code=201, response_model=Round, dependencies=[Admin], responses=problems(401, 409, 413, 415, 422)
)
def open_round(request: Request, new: NewRound) -> Response:
    """Open a round; its parameters never change."""
    if (new.items is None) == (new.domain_size is None):
        raise ParameterError("give either items or domain_size")
    if new.name == "current":
        raise ParameterError("name: 'current' means the round opened last and cannot be a name")
    items = tuple(new.items) if new.items is not None else tuple(map(str, range(new.domain_size or 0)))
    service = service_of(request)
    stored = service.open_round(new.name, RoundParameters(new.protocol, new.epsilon, items, new.hash_range))
    return json(_round(stored, service.parameters_of(stored)), 201, {"Location": f"/rounds/{stored.id}"})


@router.get("", response_model=Rounds, responses=problems(404, 422))
def list_rounds(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000, description="Rounds at most.")] = 100,
    before: Annotated[str | None, Query(description="Id of the round after which the page starts.")] = None,
) -> Response:
    """List rounds, the one opened last first."""
    return json({"rounds": [_round(stored, known) for stored, known in service_of(request).list_rounds(limit, before)]})


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


@router.post("/{round}/close", response_model=Round, dependencies=[Admin], responses=problems(401, 404))
def close_round(request: Request) -> Response:
    """Close a round: after the answer no report enters any more."""
    service = service_of(request)
    stored = service.store.close_round(round_in_path(request))
    return json(_round(stored, service.parameters_of(stored)))


@router.delete("/{round}", status_code=204, dependencies=[Admin], responses=problems(401, 404))
def delete_round(request: Request) -> Response:
    """Delete a round and all its reports."""
    service_of(request).delete_round(round_in_path(request))
    return Response(status_code=204)


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
    }


def _round(stored: StoredRound, known: OpenRound) -> dict[str, Any]:
    return _parameters(stored, known) | {
        "state": stored.state,
        "n": stored.n,
        "opened_at": stored.opened_at,
        "closed_at": stored.closed_at,
    }

"""Opening, reading, closing and deleting rounds and forms, and minting their tickets."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic_core import from_json, to_json
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ldprecover.protocols import PROTOCOLS, own_parameters
from ldprecover.rounds.parameters import TEXTS
from ldprecover_interface import paths
from ldprecover_interface.export import Export
from ldprecover_interface.forms import Form, Forms, NewForm
from ldprecover_interface.rounds import (
    NewRound,
    NewTickets,
    Parameters,
    Rounds,
    RoundStatus,
    RoundSummary,
    Stats,
)
from ldprecover_server.errors import (
    FormNotFoundError,
    InvalidParameterError,
    InvalidRequestError,
    NameTakenError,
    ReportsGoneError,
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
from ldprecover_server.rounds import RoundInfo
from ldprecover_server.storage import StoredRound

router = APIRouter(tags=["rounds"])

_SMALL = 4096  # bytes; enough for a body that holds one number
_TICKETS_PER_PIECE = 1000
_STORED = (
    *("id", "name", "protocol", "epsilon", "domain_size", "digest"),
    *("practice", "form", "access", "read_access", "retention"),
    *TEXTS,
)
"""Fields that a response copies from the stored round."""
_Before = Annotated[
    str | None, Query(max_length=64, description="Id of the last one of the previous page.")
]
_FormReference = Annotated[str, Path(alias="form", description="An id or a name.")]
_END_ROUND = problems(RoundNotFoundError, RoundOfFormError, *ADMIN, *STORAGE)
_END_FORM = problems(FormNotFoundError, *ADMIN, *STORAGE)
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
        ReportsGoneError,
        InvalidParameterError,
    ),
    openapi_extra=body_schema(NewRound),
)
async def open_round(request: Request, caller: Admin) -> Response:
    """Open a round; its parameters never change."""

    def open() -> Response:
        stored, info = caller.services.rounds.open(new)
        return _round(caller, stored, info, 201, _location(request, paths.ROUNDS, stored.id))

    async with json_body(request, caller, NewRound, caller.services.limits.max_body_bytes) as new:
        return await caller.respond(open)


def _location(request: Request, path: str, id: str) -> dict[str, str]:
    return {"Location": f"{request.scope.get('root_path', '')}{path}/{id}"}


@router.get(
    paths.ROUNDS,
    response_model=Rounds,
    responses=problems(RoundNotFoundError, InvalidRequestError, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def list_rounds(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of rounds.")] = 100,
    before: _Before = None,
) -> Response:
    """List rounds without their items; the first was opened last."""

    def read() -> Rounds:
        page = caller.services.rounds.page(limit, before)
        return Rounds.model_construct(rounds=_summaries(caller, page))

    return json_response(await caller.run(read))


@router.get(
    paths.ROUND,
    response_model=RoundStatus,
    responses=problems(RoundNotFoundError, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def get_round(round: RoundReference, caller: Reader) -> Response:
    """Return a round: its parameters, its state, its reports counted, and its verdict."""
    return await caller.respond(lambda: _round(caller, *caller.services.rounds.get(round)))


@router.get(
    paths.ROUND + paths.PARAMETERS,
    response_model=Parameters,
    responses=problems(RoundNotFoundError, *STORAGE),
)
async def get_parameters(request: Request, round: RoundReference, caller: Anyone) -> Response:
    """Return the immutable part of a round; by id it may be cached for ever."""
    rounds = caller.services.rounds

    def respond() -> Response:
        stored, info = rounds.get(round)
        headers = {
            "ETag": f'"{stored.digest}-{stored.id}"',
            # A name may later belong to another round, and `current` changes; an id stays.
            "Cache-Control": _FOREVER if round == stored.id else "no-cache",
        }
        if unchanged := not_modified(request, headers):
            return unchanged
        # As decimal digits: JSON readers that use doubles lose bits of 64-bit integers.
        thresholds = {name: str(value) for name, value in info.oracle.thresholds.items()}
        parameters = Parameters.model_construct(**_head(stored), thresholds=thresholds, items=[])
        return json_response(parameters, headers=headers, labels=rounds.labels(info))

    return await caller.respond(respond)


@router.post(paths.ROUND + paths.CLOSE, response_model=RoundStatus, responses=_END_ROUND)
async def close_round(request: Request, round: RoundReference, caller: Admin) -> Response:
    """Close a round: it accepts no reports after the response."""
    close = caller.services.rounds.close
    response = await caller.respond(lambda: _round(caller, *close(round)))
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
    return await _mint(request, caller, caller.services.rounds.mint, round)


async def _mint(
    request: Request, caller: Caller, mint: Callable[[str, int], Iterator[str]], reference: str
) -> Response:
    async with json_body(request, caller, NewTickets, _SMALL) as new:
        tickets = await caller.run(mint, reference, new.count)
    lines = (f"{ticket}\n" for ticket in tickets)
    pieces = iter(lambda: "".join(itertools.islice(lines, _TICKETS_PER_PIECE)), "")
    return StreamingResponse(pieces, media_type="text/plain", headers={"Cache-Control": "no-store"})


@router.delete(paths.ROUND, status_code=204, responses=_END_ROUND)
async def delete_round(round: RoundReference, caller: Admin) -> None:
    """Delete a round and all its reports."""
    await caller.run(caller.services.rounds.delete, round)


@router.get(
    paths.ROUND + paths.STATS,
    responses=problems(RoundNotFoundError, *ADMIN, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def get_stats(round: RoundReference, caller: Reader) -> Stats:
    """Return the number of a round's reports; it is shorter than the round with its items."""
    rounds = caller.services.rounds

    def read() -> Stats:
        info = rounds.readable(round, caller.key)
        return Stats(round=info.id, reports=rounds.tally(info).n)

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
    """Return a round's parameters; those of a protocol that is not loaded are null."""
    is_loaded = stored.protocol in PROTOCOLS
    return {
        **{name: getattr(stored, name) for name in _STORED},
        **dict.fromkeys(own_parameters()),
        **(stored.oracle.own if is_loaded else {}),
        "digits": stored.oracle.derived.get("digits") if is_loaded else None,
        "p": stored.p if is_loaded else None,
        "q": stored.q if is_loaded else None,
    }


@router.post(
    paths.FORMS,
    status_code=201,
    response_model=Form,
    responses=problems(*ADMIN, *STORAGE, *BODY, NameTakenError, InvalidParameterError),
    openapi_extra=body_schema(NewForm),
)
async def open_form(request: Request, caller: Admin) -> Response:
    """Open a form: all of its rounds, or none. Each person answers one of them."""
    async with json_body(request, caller, NewForm, caller.services.limits.max_body_bytes) as new:
        form = await caller.run(lambda: _form(caller, caller.services.rounds.open_form(new)))
    return json_response(form, 201, _location(request, paths.FORMS, form.id))


@router.get(
    paths.FORMS,
    response_model=Forms,
    responses=problems(FormNotFoundError, InvalidRequestError, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def list_forms(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=20, description="Maximum number of forms.")] = 20,
    before: _Before = None,
) -> Response:
    """List forms; the first was opened last."""

    def read() -> Response:
        page = caller.services.rounds.forms(limit, before)
        forms = [
            _form(caller, [*each]) for _, each in itertools.groupby(page, lambda each: each.form)
        ]
        return json_response(Forms.model_construct(forms=forms))

    return await caller.respond(read)


@router.get(
    paths.FORM,
    response_model=Form,
    responses=problems(FormNotFoundError, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def get_form(form: _FormReference, caller: Reader) -> Response:
    """Return a form with its rounds, their reports counted, and their verdicts."""
    read = caller.services.rounds.form
    return await caller.respond(lambda: json_response(_form(caller, read(form))))


@router.post(paths.FORM + paths.CLOSE, response_model=Form, responses=_END_FORM)
async def close_form(request: Request, form: _FormReference, caller: Admin) -> Response:
    """Close a form: none of its rounds accepts reports after the response."""
    close = caller.services.rounds.close_form
    response = await caller.respond(lambda: json_response(_form(caller, close(form))))
    request.app.state.verdicts.wake()
    return response


@router.delete(paths.FORM, status_code=204, responses=_END_FORM)
async def delete_form(form: _FormReference, caller: Admin) -> None:
    """Delete a form, its rounds and all their reports."""
    await caller.run(caller.services.rounds.delete_form, form)


@router.post(
    paths.FORM + paths.TICKETS,
    responses=problems(*ADMIN, *STORAGE, *BODY, FormNotFoundError, InvalidParameterError),
    response_class=PlainTextResponse,
    openapi_extra=body_schema(NewTickets),
)
async def mint_form_tickets(request: Request, form: _FormReference, caller: Admin) -> Response:
    """Mint single-use tickets, one a line; each admits a report to the round that it assigns."""
    return await _mint(request, caller, caller.services.rounds.mint_for_form, form)


def _form(caller: Caller, rounds: Sequence[StoredRound]) -> Form:
    first = rounds[0]
    return Form.model_construct(
        id=first.form,
        name=first.form_name,
        title=first.form_title,
        assign="ticket" if first.access == "ticket" else "client",
        rounds=_summaries(caller, rounds),
    )


def _summaries(caller: Caller, rounds: Sequence[StoredRound]) -> list[RoundSummary]:
    # A round may have 100,000 labels; GET /rounds/{id} returns them.
    verdicts = caller.services.rounds.verdicts(rounds, caller.key)
    return [
        RoundSummary.model_construct(**_state(*each)) for each in zip(rounds, verdicts, strict=True)
    ]


def _state(stored: StoredRound, verdict: str | None) -> dict[str, Any]:
    return _head(stored) | {
        **{name: getattr(stored, name) for name in ("state", "n", "opened_at", "closed_at")},
        "verdict": None if verdict is None else from_json(verdict),
    }


def _round(
    caller: Caller,
    stored: StoredRound,
    info: RoundInfo,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    rounds = caller.services.rounds
    (verdict,) = rounds.verdicts([stored], caller.key)
    message = RoundStatus.model_construct(**_state(stored, verdict), items=[])
    return json_response(message, status, headers, labels=rounds.labels(info))

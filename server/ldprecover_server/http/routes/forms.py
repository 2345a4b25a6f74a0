"""Forms: opening, listing and reading them, closing, deleting, and their tickets."""

import itertools
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import PlainTextResponse, Response

from ldprecover_interface import paths
from ldprecover_interface.forms import Form, FormList, NewForm
from ldprecover_interface.rounds import NewTickets
from ldprecover_server.errors import (
    FormNotFoundError,
    InvalidParameterError,
    InvalidRequestError,
    NameTakenError,
    NotNextError,
)
from ldprecover_server.http.bodies import body_schema, json_body
from ldprecover_server.http.dependencies import KEY_IF_NEEDED, Admin, Caller, Reader
from ldprecover_server.http.problems import ADMIN, BODY, STORAGE, problems
from ldprecover_server.http.responses import json_response
from ldprecover_server.http.routes.rounds import Before, location, stream_tickets, summaries
from ldprecover_server.storage import StoredRound

router = APIRouter(tags=["rounds"])

FormReference = Annotated[str, Path(alias="form", description="An id or a name.")]
_END_FORM = problems(FormNotFoundError, *ADMIN, *STORAGE)


@router.post(
    paths.FORMS,
    status_code=201,
    response_model=Form,
    responses=problems(
        *ADMIN, *STORAGE, *BODY, NameTakenError, NotNextError, InvalidParameterError
    ),
    openapi_extra=body_schema(NewForm),
)
async def open_form(request: Request, caller: Admin) -> Response:
    """Open a form: all of its rounds, or none. Each person answers one of them."""
    async with json_body(request, caller, NewForm, caller.services.limits.max_body_bytes) as new:
        open = caller.services.rounds.open_form
        return await caller.respond(
            lambda: form_response(request, caller, open(new, caller.key_name))
        )


@router.get(
    paths.FORMS,
    response_model=FormList,
    responses=problems(FormNotFoundError, InvalidRequestError, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def list_forms(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=20, description="Maximum number of forms.")] = 20,
    before: Before = None,
) -> Response:
    """List forms; the first was opened last."""

    def read() -> Response:
        page = caller.services.rounds.forms(limit, before)
        forms = [
            form_message(caller, [*each])
            for _, each in itertools.groupby(page, lambda each: each.form)
        ]
        return json_response(FormList.model_construct(forms=forms))

    return await caller.respond(read)


@router.get(
    paths.FORM,
    response_model=Form,
    responses=problems(FormNotFoundError, *STORAGE),
    openapi_extra=KEY_IF_NEEDED,
)
async def get_form(form: FormReference, caller: Reader) -> Response:
    """Return a form with its rounds, their reports counted, and their verdicts."""
    read = caller.services.rounds.form
    return await caller.respond(lambda: json_response(form_message(caller, read(form))))


@router.post(paths.FORM + paths.CLOSE, response_model=Form, responses=_END_FORM)
async def close_form(request: Request, form: FormReference, caller: Admin) -> Response:
    """Close a form: none of its rounds accepts reports after the response."""
    close = caller.services.rounds.close_form
    response = await caller.respond(
        lambda: json_response(form_message(caller, close(form, caller.key_name)))
    )
    request.app.state.verdicts.wake()
    return response


@router.delete(paths.FORM, status_code=204, responses=_END_FORM)
async def delete_form(form: FormReference, caller: Admin) -> None:
    """Delete a form, its rounds and all their reports."""
    await caller.run(caller.services.rounds.delete_form, form, caller.key_name)


@router.post(
    paths.FORM + paths.TICKETS,
    responses=problems(*ADMIN, *STORAGE, *BODY, FormNotFoundError, InvalidParameterError),
    response_class=PlainTextResponse,
    openapi_extra=body_schema(NewTickets),
)
async def mint_form_tickets(request: Request, form: FormReference, caller: Admin) -> Response:
    """Mint single-use tickets, one a line; each admits a report to the round that it assigns."""
    return await stream_tickets(request, caller, caller.services.rounds.mint_for_form, form)


def form_response(
    request: Request, caller: Caller, rounds: Sequence[StoredRound], status: int = 201
) -> Response:
    """Return a form that was opened, in a response."""
    form = form_message(caller, rounds)
    return json_response(form, status, location(request, paths.FORMS, form.id))


def form_message(caller: Caller, rounds: Sequence[StoredRound]) -> Form:
    """Return a form from its rounds in order."""
    first = rounds[0]
    return Form.model_construct(
        id=first.form,
        name=first.form_name,
        title=first.form_title,
        assign="ticket" if first.access == "ticket" else "client",
        rounds=summaries(caller, rounds),
    )

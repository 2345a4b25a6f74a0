"""Series: listing and reading them, and opening the next number."""

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_interface.forms import Form
from ldprecover_interface.rounds import RoundStatus
from ldprecover_interface.series import NextNumber, Series, SeriesEntry, SeriesList
from ldprecover_server.errors import (
    InvalidParameterError,
    InvalidRequestError,
    NotNextError,
    SeriesNotFoundError,
)
from ldprecover_server.http.bodies import body_schema, json_body
from ldprecover_server.http.dependencies import Admin, Anyone
from ldprecover_server.http.problems import ADMIN, BODY, STORAGE, problems
from ldprecover_server.http.responses import json_response
from ldprecover_server.http.routes.forms import form_response
from ldprecover_server.http.routes.rounds import SMALL, location, round_response
from ldprecover_server.storage import StoredRound

router = APIRouter(tags=["rounds"])

SeriesReference = Annotated[str, Path(alias="series", description="A name.")]


@router.get(
    paths.ALL_SERIES,
    response_model=SeriesList,
    responses=problems(InvalidRequestError, *STORAGE),
)
async def list_series(caller: Anyone) -> Response:
    """List all series with their rounds or forms, without items."""

    def read() -> Response:
        listed = caller.services.rounds.series()
        groups = itertools.groupby(listed, lambda row: row[1].series)
        series = [_series([*group]) for _, group in groups]
        return json_response(SeriesList.model_construct(series=series))

    return await caller.respond(read)


@router.get(
    paths.SERIES,
    response_model=Series,
    responses=problems(SeriesNotFoundError, *STORAGE),
)
async def get_series(series: SeriesReference, caller: Anyone) -> Response:
    """Return a series: what of it is open, and its rounds or forms, without items."""
    read = caller.services.rounds.series
    return await caller.respond(lambda: json_response(_series(read(series))))


@router.post(
    paths.SERIES + paths.NEXT,
    status_code=201,
    response_model=RoundStatus | Form,
    responses=problems(
        *ADMIN, *STORAGE, *BODY, SeriesNotFoundError, NotNextError, InvalidParameterError
    ),
    openapi_extra=body_schema(NextNumber),
)
async def open_next(request: Request, series: SeriesReference, caller: Admin) -> Response:
    """Close what is open and open the next number, like the one before; the last is 200."""

    def open() -> Response:
        rounds, is_new = caller.services.rounds.open_next(
            series, new.number, new.closes_at, caller.key_name
        )
        status, first = 201 if is_new else 200, rounds[0]
        if first.form is not None:
            return form_response(request, caller, rounds, status)
        return round_response(caller, first, status, location(request, paths.ROUNDS, first.id))

    async with json_body(request, caller, NextNumber, SMALL) as new:
        response = await caller.respond(open)
    request.app.state.verdicts.wake()
    return response


def _series(listed: Sequence[tuple[int, StoredRound]]) -> Series:
    last, newest = listed[0]
    kind = "round" if newest.form is None else "form"
    entries = []
    for _, group in itertools.groupby((round for _, round in listed), lambda round: round.number):
        first, *others = group
        fields = {name: getattr(first, name) for name in SeriesEntry.model_fields}
        fields |= {"id": first.form or first.id, "name": first.form_name or first.name}
        fields["n"] += sum(round.n for round in others)
        entries.append(SeriesEntry.model_construct(**fields))
    current = {kind: entries[0].id} if newest.state == "open" else None
    members: dict[str, Any] = {f"{kind}s": entries}
    return Series.model_construct(series=newest.series, number=last, current=current, **members)

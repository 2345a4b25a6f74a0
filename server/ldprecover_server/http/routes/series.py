"""Series: listing and reading them, and opening the next number."""

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_interface.base import SERIES_NAME
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
from ldprecover_server.storage import Member

router = APIRouter(tags=["rounds"])

SeriesReference = Annotated[str, Path(alias="series", description="A name.")]
After = Annotated[
    str | None,
    Query(pattern=SERIES_NAME, description="The name of the last series of the previous page."),
]


@router.get(
    paths.ALL_SERIES,
    response_model=SeriesList,
    responses=problems(InvalidRequestError, *STORAGE),
)
async def list_series(
    caller: Anyone,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of series.")] = 100,
    after: After = None,
) -> Response:
    """List series by their names, with their rounds or forms, without items."""

    def read() -> Response:
        page = caller.services.rounds.series(limit, after)
        groups = itertools.groupby(page, lambda member: member.series)
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
    read = caller.services.rounds.members
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


def _series(members: Sequence[Member]) -> Series:
    newest = members[0]
    kind = "round" if newest.form is None else "form"
    entries = []
    for _, group in itertools.groupby(members, lambda member: member.number):
        first, *others = group
        fields = {name: getattr(first, name) for name in SeriesEntry.model_fields}
        fields["n"] += sum(round.n for round in others)
        entries.append(SeriesEntry.model_construct(**fields))
    current = {kind: newest.id} if newest.state == "open" else None
    lists: dict[str, Any] = {f"{kind}s": entries}
    return Series.model_construct(
        series=newest.series, number=newest.last, current=current, **lists
    )

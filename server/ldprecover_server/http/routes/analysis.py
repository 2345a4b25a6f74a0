"""Analyses of a round: the recovery methods that fit it, and alarms."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ldprecover.evidence.alarms import DEFAULT_RATE, LEAST_RATE
from ldprecover.items import MAX_CANARIES
from ldprecover_interface import paths
from ldprecover_interface.analysis import (
    Alarm,
    Alarms,
    MethodOption,
    Methods,
    MethodSummary,
)
from ldprecover_server.errors import (
    InvalidParameterError,
    InvalidRequestError,
    NoReportsError,
    ReportsGoneError,
)
from ldprecover_server.http.csv import AS_CSV, Format, csv
from ldprecover_server.http.dependencies import KEY_IF_NEEDED, ReadableRound, Reader
from ldprecover_server.http.messages import cancel_on_disconnect, json_response
from ldprecover_server.http.problems import ANALYSIS, READ, problems

router = APIRouter(prefix=paths.ROUND, tags=["results"])


@router.get(paths.METHODS, responses=problems(*READ), openapi_extra=KEY_IF_NEEDED)
async def list_methods(round: ReadableRound, caller: Reader) -> Methods:
    """List the recovery methods with their inputs and options, and whether this round fits them."""
    methods = await caller.services.analyses.methods(round, caller)
    summaries = [
        MethodSummary(
            name=method.name,
            summary=method.summary,
            needs=sorted(method.needs),
            source=source,
            better_with=sorted(method.better_with),
            uses=sorted(method.uses),
            gives=method.gives,
            cost=method.cost,
            options=[
                MethodOption(**asdict(option) | {"choices": list(option.choices)})
                for option in method.options
            ],
            available=reason is None,
            reason=reason,
        )
        for method, source, reason in methods
    ]
    return Methods(round=round.id, methods=summaries)


@router.get(
    paths.ALARMS,
    response_model=Alarms,
    responses={
        200: AS_CSV,
        **problems(
            *READ,
            *ANALYSIS,
            NoReportsError,
            ReportsGoneError,
            InvalidRequestError,
            InvalidParameterError,
        ),
    },
    openapi_extra=KEY_IF_NEEDED,
)
async def get_alarms(
    request: Request,
    round: ReadableRound,
    caller: Reader,
    rate: Annotated[
        float, Query(ge=LEAST_RATE, lt=0.5, description="False-alarm rate of each alarm.")
    ] = DEFAULT_RATE,
    canary: Annotated[
        list[str],
        Query(
            max_length=MAX_CANARIES,
            description="Label of an item that is known to be held by nobody; repeatable.",
        ),
    ] = [],  # noqa: B006  FastAPI copies it
    form: Format = "json",
) -> Response:
    """Test a round for reports that honest users do not send; some tests read all reports."""
    result = await cancel_on_disconnect(
        request.receive, caller.services.analyses.alarms(round, rate, canary, caller)
    )
    alarms = [
        Alarm.model_construct(**{name: getattr(alarm, name) for name in Alarm.model_fields})
        for alarm in result.alarms
    ]
    if form == "csv":
        rows = (tuple(alarm.model_dump().values()) for alarm in alarms)
        return csv(f"alarms-{round.id}", tuple(Alarm.model_fields), rows)
    return json_response(
        Alarms.model_construct(
            round=round.id, n=result.n, reports_read=result.reports_read, alarms=alarms
        )
    )

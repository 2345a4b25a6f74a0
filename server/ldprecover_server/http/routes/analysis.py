"""Which recoveries a round can have, and what its reports give away of an attack."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from msgspec.structs import astuple
from starlette.responses import Response

from ldprecover.evidence.alarms import DEFAULT_RATE, LEAST_RATE
from ldprecover.evidence.suspects import DEFAULT_RATE as DISCOVERY_RATE
from ldprecover_interface import paths
from ldprecover_server.errors import (
    InvalidParameterError,
    InvalidRequestError,
    NoReportsError,
    ReportsGoneError,
)
from ldprecover_server.http.csv import Format, csv
from ldprecover_server.http.dependencies import Caller, Named, described, get_services
from ldprecover_server.http.disconnects import cancel_on_disconnect
from ldprecover_server.http.messages import (
    AlarmRaised,
    Alarms,
    MethodOption,
    Methods,
    MethodSummary,
    Suspect,
    Suspected,
)
from ldprecover_server.http.responses import json
from ldprecover_server.http.routes.results import ANALYSIS, READ

router = APIRouter(prefix=paths.ROUND, tags=["results"])


@router.get(paths.METHODS, **described(Methods, *READ))
async def list_methods(request: Request, round: Named, caller: Caller) -> Response:
    """List the recovery methods: what each needs, takes and gives, and whether this round can give
    it.
    """
    services = get_services(request)
    known = await caller.run(services.results.readable, round, caller.key)
    methods = await services.analyses.methods(known, caller)
    return json(
        Methods(
            known.id,
            [
                MethodSummary(
                    name=method.name,
                    summary=method.summary,
                    needs=sorted(method.needs),
                    better_with=sorted(method.better_with),
                    uses=sorted(method.uses),
                    gives=method.gives,
                    cost=method.cost,
                    options=[
                        MethodOption(
                            option.name, option.default, option.low, option.high, option.meaning
                        )
                        for option in method.options
                    ],
                    available=reason is None,
                    reason=reason,
                )
                for method, reason in methods
            ],
        )
    )


@router.get(
    paths.ALARMS,
    **described(
        Alarms,
        *READ,
        NoReportsError,
        ReportsGoneError,
        *ANALYSIS,
        InvalidRequestError,
        InvalidParameterError,
        as_csv=True,
    ),
)
async def get_alarms(
    request: Request,
    round: Named,
    caller: Caller,
    rate: Annotated[
        float, Query(ge=LEAST_RATE, lt=0.5, description="False-alarm rate of each alarm.")
    ] = DEFAULT_RATE,
    form: Format = "json",
) -> Response:
    """Test a round for reports that honest users would not have sent; some tests need every report
    kept.
    """
    services = get_services(request)
    known = await caller.run(services.results.readable, round, caller.key)
    answer = await cancel_on_disconnect(request, services.analyses.alarms(known, rate, caller))
    listed = [
        AlarmRaised(
            alarm.name, alarm.raised, alarm.statistic, alarm.threshold, alarm.rate, alarm.meaning
        )
        for alarm in answer.alarms
    ]
    if form == "csv":
        return csv(f"alarms-{known.id}", AlarmRaised.__struct_fields__, map(astuple, listed))
    return json(Alarms(known.id, answer.n, answer.reports_read, listed))


@router.get(
    paths.SUSPECTS,
    **described(
        Suspected,
        *READ,
        *ANALYSIS,
        NoReportsError,
        InvalidRequestError,
        InvalidParameterError,
        as_csv=True,
    ),
)
async def get_suspects(
    request: Request,
    round: Named,
    caller: Caller,
    rate: Annotated[
        float,
        Query(
            gt=0,
            lt=0.5,
            description="False-discovery rate: the share of false suspicions expected.",
        ),
    ] = DISCOVERY_RATE,
    drift: Annotated[
        float,
        Query(
            ge=0,
            le=1,
            allow_inf_nan=False,
            description="Standard deviation by which true frequencies may change.",
        ),
    ] = 0.0,
    form: Format = "json",
) -> Response:
    """Show which items rose since the earlier closed rounds of the series by more than their
    noise.
    """
    services = get_services(request)
    known = await caller.run(services.results.readable, round, caller.key)
    found, earlier = await cancel_on_disconnect(
        request, services.analyses.suspects(known, rate, drift, caller)
    )
    listed = [
        Suspect(
            item,
            known.parameters.items[item],
            float(found.before[item]),
            float(found.now[item]),
            float(found.z[item]),
            float(found.p_values[item]),
        )
        for item in found.items
    ]
    if form == "csv":
        # Text of anonymous callers first: see `to_csv`.
        rows = (
            (each.label, each.item, each.before, each.now, each.z, each.p_value) for each in listed
        )
        return csv(f"suspects-{known.id}", ("label", "item", "before", "now", "z", "p_value"), rows)
    return json(Suspected(known.id, [stored.id for stored in earlier], found.rate, listed))

"""Which recoveries a round can have, and what its reports give away of an attack."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ldprecover.alarms import DEFAULT_RATE, LEAST_RATE
from ldprecover.history import DEFAULT_RATE as DISCOVERY_RATE
from ldprecover_server.http.callers import while_there
from ldprecover_server.http.models import Alarms, Methods, Suspected
from ldprecover_server.http.routes.common import BearerKey, analyses_of, json, problems, round_in_path

__all__ = ["router"]

router = APIRouter(tags=["results"])


@router.get("/methods", response_model=Methods, responses=problems(401, 403, 404))
async def methods(request: Request, key: BearerKey) -> Response:
    """List the recovery methods: what each needs, takes and gives, and whether this round can give it."""
    round, found = await analyses_of(request).methods(round_in_path(request), key)
    listed = [
        {
            "name": method.name,
            "summary": method.summary,
            "needs": sorted(method.needs),
            "uses": sorted(method.uses),
            "gives": method.gives,
            "cost": method.cost,
            "options": [
                {
                    "name": option.name,
                    "default": option.default,
                    "low": option.low,
                    "high": option.high,
                    "meaning": option.meaning,
                }
                for option in method.options
            ],
            "available": reason is None,
            "reason": reason,
        }
        for method, reason in found
    ]
    return json({"round": round.id, "methods": listed})


@router.get("/alarms", response_model=Alarms, responses=problems(401, 403, 404, 409, 422, 503, 504))
async def alarms(
    request: Request,
    key: BearerKey,
    rate: Annotated[float, Query(ge=LEAST_RATE, lt=0.5, description="False-alarm rate of each alarm.")] = DEFAULT_RATE,
) -> Response:
    """Test a round for reports that honest users would not have sent; some tests need every report kept."""
    round, answer = await while_there(request, analyses_of(request).alarms(round_in_path(request), rate, key))
    listed = [
        {
            "name": alarm.name,
            "raised": alarm.raised,
            "statistic": alarm.statistic,
            "threshold": alarm.threshold,
            "rate": alarm.rate,
            "meaning": alarm.meaning,
        }
        for alarm in answer.alarms
    ]
    return json({"round": round.id, "n": answer.n, "reports_read": answer.reports_read, "alarms": listed})


@router.get("/suspects", response_model=Suspected, responses=problems(401, 403, 404, 409, 422, 503, 504))
async def suspects(
    request: Request,
    key: BearerKey,
    rate: Annotated[
        float, Query(gt=0, lt=0.5, description="False-discovery rate: the share of false suspicions expected.")
    ] = DISCOVERY_RATE,
    drift: Annotated[
        float,
        Query(ge=0, le=1, allow_inf_nan=False, description="Standard deviation by which true frequencies may change."),
    ] = 0.0,
) -> Response:
    """Show which items rose since the earlier closed rounds of the series by more than their noise."""
    work = analyses_of(request).suspects(round_in_path(request), rate, drift, key)
    round, found, earlier = await while_there(request, work)
    return json(
        {
            "round": round.id,
            "earlier": [stored.id for stored in earlier],
            "rate": found.rate,
            "suspects": [
                {
                    "item": item,
                    "label": round.parameters.items[item],
                    "before": float(found.before[item]),
                    "now": float(found.now[item]),
                    "z": float(found.z[item]),
                    "p_value": float(found.p_values[item]),
                }
                for item in found.items
            ],
        }
    )

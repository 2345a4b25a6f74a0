"""Plans of rounds: the errors that a protocol, an epsilon and a number of users give."""

import functools
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ldprecover.planning import PlanRequest, plan
from ldprecover.protocols import MAX_DOMAIN_SIZE, MAX_EPSILON, MAX_USERS, MIN_EPSILON
from ldprecover_interface import paths
from ldprecover_interface.plans import Plans
from ldprecover_server.errors import BusyError, InvalidParameterError, InvalidRequestError
from ldprecover_server.http.dependencies import Anyone
from ldprecover_server.http.problems import problems

router = APIRouter(tags=["rounds"])

_CACHED = 256  # plans, of some 5 KB each

Finite = {"allow_inf_nan": False}


@router.get(
    paths.PLAN,
    response_model=Plans,
    responses=problems(BusyError, InvalidRequestError, InvalidParameterError),
)
async def get_plan(
    caller: Anyone,
    domain_size: Annotated[
        int | None, Query(ge=2, le=MAX_DOMAIN_SIZE, description="d, the number of items.")
    ] = None,
    users: Annotated[
        int | None, Query(ge=1, le=MAX_USERS, description="n, as many reports.")
    ] = None,
    epsilon: Annotated[
        float | None,
        Query(
            ge=MIN_EPSILON, le=MAX_EPSILON, **Finite, description="Privacy budget of one report."
        ),
    ] = None,
    error: Annotated[
        float | None,
        Query(gt=0, le=1, **Finite, description="Standard error that is wanted, as a frequency."),
    ] = None,
    protocol: Annotated[
        str | None, Query(max_length=64, description="One of them; absent: all compared.")
    ] = None,
    sum_of: Annotated[
        int,
        Query(
            ge=1,
            le=MAX_DOMAIN_SIZE,
            description="Items whose estimates are added; the error is of their sum.",
        ),
    ] = 1,
    frequency: Annotated[
        float | None,
        Query(
            ge=0, le=1, **Finite, description="What these items have together; absent: 1/d each."
        ),
    ] = None,
    targets: Annotated[
        int | None,
        Query(
            ge=1,
            le=MAX_DOMAIN_SIZE,
            description="Items that an attacker raises; absent: min(10, d/2).",
        ),
    ] = None,
    beta: Annotated[
        float | None,
        Query(ge=0, le=1, **Finite, description="Share of malicious users; absent: 0.05."),
    ] = None,
    gain: Annotated[
        float | None,
        Query(
            gt=0,
            le=1e6,
            **Finite,
            description="Instead of beta: what they may add to the targets together.",
        ),
    ] = None,
    lead: Annotated[
        float | None,
        Query(
            gt=0,
            le=1,
            **Finite,
            description="A lead of one estimate over another that is safe from a share beta of "
            "malicious reports. With it the error may be absent too.",
        ),
    ] = None,
    change: Annotated[
        float | None,
        Query(
            gt=0,
            le=1,
            **Finite,
            description="A rise of one item between two such rounds that is seen with probability "
            ".8. With it the error may be absent too.",
        ),
    ] = None,
) -> Response:
    """Plan a round: give all but one of domain_size, users, epsilon and error; or a lead or a
    change for the error.
    """
    plan_request = PlanRequest(
        domain_size=domain_size,
        users=users,
        epsilon=epsilon,
        error=error,
        sum_of=sum_of,
        frequency=frequency,
        targets=targets,
        beta=beta,
        gain=gain,
        lead=lead,
        change=change,
    )
    return Response(
        await caller.run(_planned, plan_request, protocol), media_type="application/json"
    )


@functools.lru_cache(maxsize=_CACHED)
def _planned(request: PlanRequest, protocol: str | None) -> bytes:
    plans = plan(request, None if protocol is None else [protocol])
    return Plans.model_validate(plans.to_dict(), strict=False).to_json()

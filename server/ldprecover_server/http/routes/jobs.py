"""Jobs: analyses that were requested with `Prefer: respond-async`."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_interface.analysis import JobStatus
from ldprecover_server.errors import JobNotFoundError, as_service_error
from ldprecover_server.http.dependencies import (
    KEY_IF_NEEDED,
    Reader,
    RoundReference,
    get_services,
)
from ldprecover_server.http.problems import problem_of, problems
from ldprecover_server.http.routes.results import READ

router = APIRouter(prefix=paths.ROUND, tags=["results"])

JobId = Annotated[
    str, Path(alias="job", description="The id in the Location of the response that started it.")
]


@router.get(
    paths.JOB,
    response_model=JobStatus,
    responses=problems(*READ, JobNotFoundError),
    openapi_extra=KEY_IF_NEEDED,
)
async def get_job(request: Request, round: RoundReference, job: JobId, caller: Reader) -> Response:
    """Return the progress of a job, and its result; it needs what reading the round needs."""
    services = get_services(request)
    known = await caller.run(services.results.readable, round, caller.key)
    found = await services.jobs.status(known.seq, job)
    error = None if found.error is None else as_service_error(found.error)
    status = JobStatus(
        job=found.id,
        round=known.id,
        state=found.state,
        progress=found.progress,
        result=None,
        problem=None if error is None else problem_of(error),
    )
    body = status.to_json()
    if found.result is not None:  # stored as JSON: it takes the place of the null
        body = body.replace(b'"result":null', b'"result":' + found.result, 1)
    return Response(body, media_type="application/json")


@router.delete(
    paths.JOB,
    status_code=204,
    responses=problems(*READ, JobNotFoundError),
    openapi_extra=KEY_IF_NEEDED,
)
async def cancel_job(request: Request, round: RoundReference, job: JobId, caller: Reader) -> None:
    """Cancel a job; a job that has ended stays as it is."""
    services = get_services(request)
    known = await caller.run(services.results.readable, round, caller.key)
    await services.jobs.cancel(known.seq, job)

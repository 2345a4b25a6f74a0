"""Analyses that were asked for with `Prefer: respond-async`: how far they are, what came of them,
and their end.
"""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_server.errors import JobNotFoundError, as_service_error
from ldprecover_server.http.dependencies import Caller, Named, described, get_services
from ldprecover_server.http.messages import JobStatus, ProblemDetails
from ldprecover_server.http.problems import problem_type
from ldprecover_server.http.responses import json
from ldprecover_server.http.routes.results import READ

router = APIRouter(prefix=paths.ROUND, tags=["results"])

JobId = Annotated[
    str, Path(alias="job", description="The id in the Location of the answer that started it.")
]


@router.get(paths.JOB, **described(JobStatus, *READ, JobNotFoundError))
async def get_job(request: Request, round: Named, job: JobId, caller: Caller) -> Response:
    """Tell how far a job is, and what came of it; whoever may read the round may ask."""
    services = get_services(request)
    known = await caller.run(services.results.readable, round, caller.key)
    found = await services.jobs.status(known.seq, job)
    problem = None
    if found.error is not None:
        refusal = as_service_error(found.error)
        problem = ProblemDetails(
            problem_type(type(refusal)), refusal.title, refusal.status, str(refusal)
        )
    status = JobStatus(found.id, known.id, found.state, found.progress, None, problem)
    if found.result is None:
        return json(status)
    # The result is JSON already: it is put in its place as it is.
    return json({**msgspec.to_builtins(status), "result": msgspec.Raw(found.result)})


@router.delete(paths.JOB, **described(None, *READ, JobNotFoundError, status=204))
async def cancel_job(request: Request, round: Named, job: JobId, caller: Caller) -> Response:
    """Cancel a job; one that has ended stays as it is."""
    services = get_services(request)
    known = await caller.run(services.results.readable, round, caller.key)
    await services.jobs.cancel(known.seq, job)
    return Response(status_code=204)

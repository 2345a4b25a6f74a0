"""Jobs: analyses that were requested with `Prefer: respond-async`."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_interface.analysis import JobStatus
from ldprecover_server.analysis.jobs import Job
from ldprecover_server.errors import JobNotFoundError
from ldprecover_server.http.dependencies import KEY_IF_NEEDED, Reader, RoundReference
from ldprecover_server.http.problems import READ, problems
from ldprecover_server.rounds import RoundInfo

router = APIRouter(prefix=paths.ROUND, tags=["results"])

JobId = Annotated[
    str, Path(alias="job", description="The id in the Location of the response that started it.")
]


def job_status(round: RoundInfo, job: Job) -> JobStatus:
    """Return the status of a round's job, without its result."""
    return JobStatus(
        job=job.id,
        round=round.id,
        state=job.state,
        progress=job.progress,
        result=None,
        problem=job.problem,
    )


@router.get(
    paths.JOB,
    response_model=JobStatus,
    responses=problems(*READ, JobNotFoundError),
    openapi_extra=KEY_IF_NEEDED,
)
async def get_job(round: RoundReference, job: JobId, caller: Reader) -> Response:
    """Return the progress of a job, and its result; it needs what reading the round needs."""
    info = await caller.read(round)
    stored = await caller.services.jobs.status(info.seq, job)
    body = job_status(info, stored).to_json()
    if stored.result is not None:  # stored as JSON: it takes the place of the null
        head, key, tail = body.partition(b'"result":')
        body = b"".join([head, key, stored.result, tail.removeprefix(b"null")])
    return Response(body, media_type="application/json")


@router.delete(
    paths.JOB,
    status_code=204,
    responses=problems(*READ, JobNotFoundError),
    openapi_extra=KEY_IF_NEEDED,
)
async def cancel_job(round: RoundReference, job: JobId, caller: Reader) -> None:
    """Cancel a job; a job that has ended stays as it is."""
    info = await caller.read(round)
    await caller.services.jobs.cancel(info.seq, job)

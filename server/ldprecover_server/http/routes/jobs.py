"""Jobs: analyses that were requested with `Prefer: respond-async`."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_interface.analysis import JobStatus
from ldprecover_server.analysis.jobs import Job
from ldprecover_server.analysis.worker_pool import OnProgress
from ldprecover_server.errors import JobNotFoundError
from ldprecover_server.http.csv import Format
from ldprecover_server.http.dependencies import KEY_IF_NEEDED, Caller, Reader, RoundReference
from ldprecover_server.http.disconnects import PREFER, cancel_on_disconnect, wants_job
from ldprecover_server.http.problems import READ, problems
from ldprecover_server.http.responses import json_response
from ldprecover_server.rounds import RoundInfo
from ldprecover_server.storage.jobs import JobAnalysis

router = APIRouter(prefix=paths.ROUND, tags=["results"])

JOB: dict[str, Any] = {"model": JobStatus, "description": "A job does the work"}
"""The entry of a route's `responses` for the 202 of an analysis that may run as a job."""

JobId = Annotated[
    str, Path(alias="job", description="The id in the Location of the response that started it.")
]

R = TypeVar("R")

Analyse = Callable[[OnProgress | None], Coroutine[Any, Any, R]]
"""Computes a result, and reports its progress."""
Write = Callable[[R, bytes], Response]
"""Returns the response with a result, given the labels of the round."""


def _as_job(prefer: Annotated[str | None, PREFER] = None, form: Format = "json") -> bool:
    return form == "json" and wants_job(prefer)


AsJob = Annotated[bool, Depends(_as_job)]
"""Whether the caller asks for a job; its result would be JSON."""


async def respond(
    request: Request,
    round: RoundInfo,
    caller: Caller,
    analysis: JobAnalysis,
    analyse: Analyse[R],
    write: Write[R],
    *,
    as_job: bool,
    result_bytes: int,
) -> Response:
    """Return the response that `write` makes in a thread, or 202 and a job that stores its body.

    Without a job the analysis is cancelled if its client disconnects. `result_bytes` is the size of
    the result.
    """
    if as_job:
        return await _start(request, round, caller, analysis, analyse, write)

    async def work() -> Response:
        result = await analyse(None)
        with caller.services.unwritten.hold(0 if caller.is_known else result_bytes):
            return await caller.run(_write, round, caller, result, write)

    return await cancel_on_disconnect(request, work())


async def _start(
    request: Request,
    round: RoundInfo,
    caller: Caller,
    analysis: JobAnalysis,
    analyse: Analyse[R],
    write: Write[R],
) -> Response:
    """Start a job, which holds the memory of the request's body until the analysis has ended."""
    reservation = request.state.reservation.pop_all()

    async def work(on_progress: OnProgress) -> Callable[[], bytes]:
        with reservation:
            result = await analyse(on_progress)
        return lambda: bytes(_write(round, caller, result, write).body)

    try:
        job = await caller.services.jobs.start(round.seq, analysis, work, keyed=caller.is_known)
    except BaseException:
        reservation.close()
        raise
    headers = {"Location": paths.job_path(round.id, job.id), "Preference-Applied": "respond-async"}
    return json_response(_status(round, job), 202, headers)


def _write(round: RoundInfo, caller: Caller, result: R, write: Write[R]) -> Response:
    with caller.services.write(round):
        return write(result, caller.services.rounds.labels(round))


def _status(round: RoundInfo, job: Job) -> JobStatus:
    """Return the status of a round's job, without its result."""
    return JobStatus(
        job=job.id,
        round=round.id,
        analysis=job.analysis,
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
    body = _status(info, stored).to_json()
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

"""What a round's reports say, and what recovery makes of them."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Annotated, TypeVar

import msgspec
from fastapi import APIRouter, Request
from msgspec import UNSET
from starlette.responses import Response

from ldprecover import Estimates, Tally
from ldprecover.evidence.quarantine import Quarantined
from ldprecover.recovery import RecoveryRequest
from ldprecover.rounds.means import Mean, is_for_numbers
from ldprecover_interface import paths
from ldprecover_interface.base import MAX_HISTORY
from ldprecover_server.analysis.analyses import Caller as Asker
from ldprecover_server.analysis.tasks import RecoverResult
from ldprecover_server.analysis.worker_pool import OnProgress
from ldprecover_server.errors import (
    AnalysesBusyError,
    AnalysisFailedError,
    AnalysisTimeoutError,
    AnalysisTooLargeError,
    BusyError,
    ForbiddenError,
    InvalidParameterError,
    InvalidRequestError,
    NoCurrentRoundError,
    NoReportsError,
    ReportsGoneError,
    RoundNotFoundError,
    StoreUnavailableError,
    UnauthorizedError,
)
from ldprecover_server.http.csv import Format, csv
from ldprecover_server.http.dependencies import (
    Caller,
    CurrentOrNamed,
    Services,
    described,
    get_services,
    read,
    set_aside,
)
from ldprecover_server.http.disconnects import PREFER, cancel_on_disconnect, wants_job
from ldprecover_server.http.messages import (
    ConclusionsDrawn,
    Frequencies,
    JobStatus,
    MeanOfNumbers,
    Recovered,
    RecoverRequest,
)
from ldprecover_server.http.responses import column, json
from ldprecover_server.http.routes.rounds import BODY
from ldprecover_server.results import Results
from ldprecover_server.rounds import KnownRound

router = APIRouter(tags=["results"])

READ = (
    UnauthorizedError,
    ForbiddenError,
    RoundNotFoundError,
    NoCurrentRoundError,
    BusyError,
    StoreUnavailableError,
)
"""How reading a round may be refused."""

ANALYSIS = (AnalysesBusyError, AnalysisTimeoutError, AnalysisTooLargeError, AnalysisFailedError)
"""How an analysis may be refused."""

T = TypeVar("T")

_SLACK = 4096 + 160 * MAX_HISTORY
_NUMBER = 26  # bytes of JSON that one number takes at the most, with the comma and a space


@router.get(paths.FREQUENCIES, **described(Frequencies, *READ, InvalidRequestError, as_csv=True))
async def get_frequencies(
    request: Request, round: CurrentOrNamed, caller: Caller, form: Format = "json"
) -> Response:
    """Unbiased, unclipped estimates with standard errors, of every report answered before."""
    results = get_services(request).results
    if form == "csv":
        return await caller.run(lambda: _frequencies_as_csv(*results.counted(round, caller.key)))
    return await caller.run(lambda: json(_frequencies(*results.counted(round, caller.key))))


def _frequencies(round: KnownRound, tally: Tally, aside: Quarantined | None) -> Frequencies:
    oracle = round.oracle
    estimates = Estimates.of(oracle, tally) if tally.n else None
    return Frequencies(
        round=round.id,
        protocol=oracle.protocol,
        epsilon=oracle.epsilon,
        n=tally.n,
        p=oracle.p,
        q=oracle.q,
        items=round.parameters.items,
        counts=column(tally.counts(oracle)),
        frequencies=column(estimates.frequencies) if estimates else None,
        standard_errors=column(estimates.standard_errors) if estimates else None,
        sum=estimates.sum if estimates else None,
        sum_standard_error=estimates.sum_standard_error if estimates else None,
        canaries=round.parameters.canaries,
        quarantined=set_aside(aside),
        mean=_mean(round, tally) if is_for_numbers(round.parameters) else UNSET,
    )


def _frequencies_as_csv(round: KnownRound, tally: Tally, aside: Quarantined | None) -> Response:
    oracle, d = round.oracle, round.oracle.domain_size
    estimates = Estimates.of(oracle, tally) if tally.n else None
    frequencies, errors = (
        (estimates.frequencies.tolist(), estimates.standard_errors.tolist())
        if estimates
        else ([None] * d,) * 2
    )
    canaries = set(round.parameters.canaries)
    counts = tally.counts(oracle).tolist()
    rows = zip(
        round.parameters.items,
        range(d),
        counts,
        frequencies,
        errors,
        (i in canaries for i in range(d)),
        strict=True,
    )
    columns = ("label", "item", "count", "frequency", "standard_error", "canary")
    return csv(f"frequencies-{round.id}", columns, rows)


def _mean(round: KnownRound, tally: Tally) -> MeanOfNumbers | None:
    if not tally.n:
        return None
    mean = Mean.of(round.oracle, tally)
    low, high = mean.interval()
    return MeanOfNumbers(mean.value, mean.standard_error, low, high)


@router.post(
    paths.RECOVER,
    **described(
        Recovered,
        *READ,
        *BODY,
        *ANALYSIS,
        NoReportsError,
        ReportsGoneError,
        InvalidParameterError,
        takes=RecoverRequest,
        later=JobStatus,
        as_csv=True,
    ),
)
async def recover_frequencies(
    request: Request,
    round: CurrentOrNamed,
    caller: Caller,
    prefer: Annotated[str | None, PREFER] = None,
    form: Format = "json",
) -> Response:
    """Recover the frequencies from the stored, possibly poisoned, counts."""
    services = get_services(request)
    known, largest = await caller.run(_readable, services.results, round, caller.key)
    with ExitStack() as held:
        wanted = (
            await read(
                request,
                RecoverRequest,
                min(largest, caller.largest),
                caller,
                optional=True,
                held=held,
            )
            or RecoverRequest()
        )
        if wants_job(prefer) and form == "json":  # a job's result is JSON
            mine = held.pop_all()

            async def work(tell: OnProgress) -> bytes:
                with mine:
                    return await _recovered(services, known, wanted, caller, tell, _written)

            try:
                job = await services.jobs.start(known.seq, work, keyed=caller.is_known)
            except BaseException:
                mine.close()
                raise
            headers = {
                "Location": paths.job_path(known.id, job.id),
                "Preference-Applied": "respond-async",
            }
            return json(
                JobStatus(job.id, known.id, job.state, job.progress, None, None), 202, headers
            )
        if form == "csv":
            return await cancel_on_disconnect(
                request, _recovered(services, known, wanted, caller, None, _written_as_csv)
            )
        answer = await cancel_on_disconnect(
            request, _recovered(services, known, wanted, caller, None, _written)
        )
    return Response(answer, media_type="application/json")


def _readable(results: Results, identifier: str, key: str | None) -> tuple[KnownRound, int]:
    """Return a round, and how many bytes a request to recover it may have.

    That is every label, an index and a number for each item, the names of other rounds, and 4 KiB.
    """
    round = results.readable(identifier, key)
    return round, round.labels_bytes + 2 * _NUMBER * round.oracle.domain_size + _SLACK


async def _recovered(
    services: Services,
    round: KnownRound,
    wanted: RecoverRequest,
    caller: Asker,
    tell: OnProgress | None,
    write: Callable[[KnownRound, RecoverRequest, RecoverResult], T],
) -> T:
    """Return a recovery as it is written, in a thread."""
    request = RecoveryRequest(
        wanted.method,
        eta=wanted.eta,
        malicious_model=wanted.malicious_model,
        support=wanted.support,
        options=wanted.options or {},
    )
    result = await services.analyses.recover(
        round, request, wanted.targets, wanted.history, caller, tell
    )
    return await caller.run(write, round, wanted, result)


def _written(round: KnownRound, wanted: RecoverRequest, answer: RecoverResult) -> bytes:
    recovery, items = answer.recovery, round.parameters.items
    drawn = recovery.conclusions
    return msgspec.json.encode(
        Recovered(
            round=round.id,
            method=recovery.method,
            eta=recovery.eta,
            targets=list(recovery.targets),
            malicious_model=wanted.malicious_model,
            n=answer.n,
            malicious_sum=recovery.malicious_sum,
            items=items,
            poisoned=column(recovery.poisoned),
            malicious=column(recovery.malicious),
            genuine=column(recovery.genuine),
            recovered=column(recovery.recovered),
            notes=list(recovery.notes),
            conclusions=None
            if drawn is None
            else msgspec.convert(drawn.to_dict(items), ConclusionsDrawn),
        )
    )


def _written_as_csv(round: KnownRound, wanted: RecoverRequest, answer: RecoverResult) -> Response:
    recovery, items = answer.recovery, round.parameters.items
    drawn, targets = recovery.conclusions, set(recovery.targets)
    columns: dict[str, Iterable[object]] = {
        "label": items,
        "item": range(len(items)),
        "poisoned": recovery.poisoned.tolist(),
        "malicious": recovery.malicious.tolist(),
        "genuine": recovery.genuine.tolist(),
        "recovered": recovery.recovered.tolist(),
        "target": [i in targets for i in range(len(items))],
    }
    said = {} if drawn is None else drawn.to_dict(items)
    for name, of in (
        ("standard_deviation", "standard_deviations"),
        ("lower", "lower"),
        ("upper", "upper"),
    ):
        columns[name] = said.get(of) or [None] * len(items)
    return csv(f"{recovery.method}-{round.id}", tuple(columns), zip(*columns.values(), strict=True))

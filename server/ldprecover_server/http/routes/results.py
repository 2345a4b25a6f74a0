"""What a round's reports say, and what recovery makes of them."""

from fastapi import APIRouter, Request
from msgspec import UNSET
from starlette.responses import Response

from ldprecover import Estimates, Tally
from ldprecover.harmony import Mean, is_for_numbers
from ldprecover_server.analysis import Analysis
from ldprecover_server.errors import (
    BusyError,
    ForbiddenError,
    InvalidParameterError,
    NoCurrentRoundError,
    NoReportsError,
    ReportsBusyError,
    ReportsGoneError,
    RoundNotFoundError,
    StoreUnavailableError,
    UnauthorizedError,
)
from ldprecover_server.http import paths
from ldprecover_server.http.answers import json
from ldprecover_server.http.messages import Frequencies, MeanOfNumbers, Recovered, RecoverRequest
from ldprecover_server.http.routes.common import Caller, CurrentOrNamed, described, read, rooms_of
from ldprecover_server.http.routes.rounds import BODY
from ldprecover_server.results import Results
from ldprecover_server.rounds import KnownRound

__all__ = ["READ", "router"]

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

_SLACK = 4096
_NUMBER = 26  # bytes of JSON that one number takes at the most, with the comma and a space


@router.get(paths.FREQUENCIES, **described(Frequencies, *READ))
async def get_frequencies(request: Request, round: CurrentOrNamed, caller: Caller) -> Response:
    """Unbiased, unclipped estimates with standard errors, of every report answered before."""
    results = rooms_of(request).results
    return await caller.run(lambda: json(_frequencies(*results.tally(round, caller.key))))


def _frequencies(round: KnownRound, tally: Tally) -> Frequencies:
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
        counts=tally.counts.tolist(),
        frequencies=estimates.frequencies.tolist() if estimates else None,
        standard_errors=estimates.standard_errors.tolist() if estimates else None,
        sum=estimates.sum if estimates else None,
        mean=_mean(round, tally) if is_for_numbers(round.parameters) else UNSET,
    )


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
        NoReportsError,
        ReportsGoneError,
        ReportsBusyError,
        InvalidParameterError,
        takes=RecoverRequest,
    ),
)
async def recover_frequencies(request: Request, round: CurrentOrNamed, caller: Caller) -> Response:
    """Recover the frequencies from the stored, possibly poisoned, counts."""
    rooms = rooms_of(request)
    known, largest = await caller.run(_readable, rooms.results, round, caller.key)
    wanted = await read(request, RecoverRequest, min(largest, caller.largest), caller, optional=True)
    wanted = wanted or RecoverRequest()
    return await caller.run(_recover, rooms.analysis, known, wanted, caller.key)


def _readable(results: Results, identifier: str, key: str | None) -> tuple[KnownRound, int]:
    """Return a round, and how many bytes a request to recover it may have.

    That is every label, an index and a number for each item, and 4 KiB.
    """
    round = results.readable(identifier, key)
    return round, round.labels_bytes + 2 * _NUMBER * round.oracle.domain_size + _SLACK


def _recover(analysis: Analysis, round: KnownRound, wanted: RecoverRequest, key: str | None) -> Response:
    known, tally, recovery = analysis.recover(
        round.id,
        method=wanted.method,
        eta=wanted.eta,
        targets=wanted.targets,
        malicious_model=wanted.malicious_model,
        support=wanted.support,
        options=wanted.options,
        key=key,
    )
    return json(
        Recovered(
            round=known.id,
            method=recovery.method,
            eta=recovery.eta,
            targets=list(recovery.targets),
            malicious_model=wanted.malicious_model,
            n=tally.n,
            malicious_sum=recovery.malicious_sum,
            items=known.parameters.items,
            poisoned=recovery.poisoned.tolist(),
            malicious=recovery.malicious.tolist(),
            genuine=recovery.genuine.tolist(),
            recovered=recovery.recovered.tolist(),
            notes=list(recovery.notes),
        )
    )

"""What a round's reports say, and what recovery makes of them."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ldprecover import Estimates, Tally
from ldprecover.harmony import Mean, is_for_numbers
from ldprecover_server.http.callers import while_there
from ldprecover_server.http.models import Frequencies, Recovered, RecoverRequest
from ldprecover_server.http.routes.common import BearerKey, analyses_of, json, problems, round_in_path, service_of
from ldprecover_server.service import OpenRound

__all__ = ["router"]

router = APIRouter(tags=["results"])


@router.get("/frequencies", response_model=Frequencies, responses=problems(401, 403, 404))
def frequencies(request: Request, key: BearerKey) -> Response:
    """Unbiased, unclipped estimates with standard errors, of every report answered before."""
    round, tally = service_of(request).tally(round_in_path(request), key)
    oracle = round.oracle
    estimates = Estimates.of(oracle, tally) if tally.n else None
    return json(
        {
            "round": round.id,
            "protocol": oracle.protocol,
            "epsilon": oracle.epsilon,
            "n": tally.n,
            "p": oracle.p,
            "q": oracle.q,
            "items": round.parameters.items,
            "counts": tally.counts.tolist(),
            "frequencies": estimates and estimates.frequencies.tolist(),
            "standard_errors": estimates and estimates.standard_errors.tolist(),
            "sum": estimates and estimates.sum,
        }
        | _mean(round, tally)
    )


def _mean(round: OpenRound, tally: Tally) -> dict[str, Any]:
    """Return the mean of a round for numbers; nothing for any other round."""
    if not is_for_numbers(round.parameters):
        return {}
    if not tally.n:
        return {"mean": None}
    mean = Mean.of(round.oracle, tally)
    low, high = mean.interval()
    return {"mean": {"value": mean.value, "standard_error": mean.standard_error, "low": low, "high": high}}


@router.post("/recover", response_model=Recovered, responses=problems(401, 403, 404, 409, 413, 415, 422, 503, 504))
async def recover(request: Request, key: BearerKey, wanted: RecoverRequest | None = None) -> Response:
    """Recover the frequencies from the stored, possibly poisoned, counts."""
    wanted = wanted or RecoverRequest()
    work = analyses_of(request).recover(
        round_in_path(request),
        method=wanted.method,
        eta=wanted.eta,
        targets=wanted.targets,
        malicious_model=wanted.malicious_model,
        support=wanted.support,
        options=wanted.options,
        key=key,
    )
    round, answer = await while_there(request, work)
    recovery = answer.recovery
    return json(
        {
            "round": round.id,
            "method": recovery.method,
            "eta": recovery.eta,
            "targets": list(recovery.targets),
            "malicious_model": wanted.malicious_model,
            "n": answer.n,
            "malicious_sum": recovery.malicious_sum,
            "items": round.parameters.items,
            "poisoned": recovery.poisoned.tolist(),
            "malicious": recovery.malicious.tolist(),
            "genuine": recovery.genuine.tolist(),
            "recovered": recovery.recovered.tolist(),
            "notes": list(recovery.notes),
        }
    )

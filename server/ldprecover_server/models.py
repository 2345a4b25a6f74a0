"""The JSON of requests and answers, as the API reference shows it."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ldprecover.protocols import MAX_DOMAIN_SIZE, MAX_EPSILON, MAX_HASH_RANGE, MIN_EPSILON

__all__ = [
    "Accepted",
    "Frequencies",
    "NewRound",
    "Parameters",
    "ProblemDetails",
    "RecoverRequest",
    "Recovered",
    "Round",
    "Rounds",
    "Version",
]

ROUND_NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class NewRound(_Request):
    """A round to open. Give `items` or `domain_size`, not both."""

    name: Annotated[
        str | None,
        Field(pattern=ROUND_NAME, description="Unique; made from the protocol when absent.", examples=["cities"]),
    ] = None
    protocol: Annotated[Literal["grr", "oue", "olh"], Field(description="Frequency oracle.")]
    epsilon: Annotated[float, Field(ge=MIN_EPSILON, le=MAX_EPSILON, description="Privacy budget of one report.")]
    items: Annotated[
        list[Annotated[str, Field(min_length=1)]] | None,
        Field(min_length=2, max_length=MAX_DOMAIN_SIZE, description="Distinct labels; item i is the i-th."),
    ] = None
    domain_size: Annotated[
        int | None, Field(ge=2, le=MAX_DOMAIN_SIZE, description='d, for items labelled "0" to "d-1".')
    ] = None
    hash_range: Annotated[
        int | None, Field(ge=2, le=MAX_HASH_RANGE, description="g, OLH only; default ceil(e^epsilon + 1).")
    ] = None


class Parameters(BaseModel):
    """What never changes in a round, and the digest by which clients can compare it."""

    id: str
    name: str
    protocol: str
    epsilon: float
    items: list[str]
    domain_size: int
    hash_range: int | None
    p: float
    q: float
    digest: Annotated[str, Field(description="SHA-256 over protocol, epsilon, hash range and items.")]


class Round(Parameters):
    """A round, its state and the number of reports counted."""

    state: Literal["open", "closed"]
    n: int
    opened_at: datetime
    closed_at: datetime | None


class Rounds(BaseModel):
    """Rounds, the one opened last first."""

    rounds: list[Round]


class Accepted(BaseModel):
    """A submission is stored and counted, durably."""

    round: str
    accepted: Annotated[int, Field(description="Reports of this submission.")]
    duplicate: Annotated[bool, Field(description="It had been stored before, under the same key.")]


class Frequencies(BaseModel):
    """Unbiased estimates, never clipped; columns follow the items."""

    round: str
    protocol: str
    epsilon: float
    n: int
    p: float
    q: float
    items: list[str]
    counts: Annotated[list[int], Field(description="Support counts C(v).")]
    frequencies: list[float] | None
    standard_errors: list[float] | None
    sum: Annotated[float | None, Field(description="Sum of the frequencies; 1 expected of honest reports.")]


class RecoverRequest(_Request):
    """How to recover; every field is optional."""

    eta: Annotated[float, Field(ge=0, le=10, description="Assumed malicious users per genuine one, m/n.")] = 0.2
    targets: Annotated[
        list[str | int],
        Field(description="Known target items, labels or indices; with any, the method is LDPRecover*."),
    ] = []
    method: Annotated[str, Field(description="Recovery method.")] = "ldprecover"
    malicious_model: Annotated[
        Literal["paper", "exact"], Field(description="LDPRecover*'s printed equations, or the corrected algebra.")
    ] = "paper"


class Recovered(BaseModel):
    """A recovery from the poisoned counts; columns follow the items."""

    round: str
    method: str
    eta: float
    targets: Annotated[list[int], Field(description="Sorted indices of the targets.")]
    malicious_model: str
    n: int
    malicious_sum: Annotated[float, Field(description="(1-qd)/(p-q).")]
    items: list[str]
    poisoned: list[float]
    malicious: Annotated[list[float], Field(description="The malicious frequencies that were assumed.")]
    genuine: Annotated[list[float], Field(description="The estimate before refining.")]
    recovered: Annotated[list[float], Field(description="Non-negative, summing to one.")]
    notes: Annotated[list[str], Field(description="What the method says about this result.")]


class Version(BaseModel):
    """What is running."""

    version: str
    kernels: Annotated[str, Field(description="Support counting: numpy or numba.")]


class ProblemDetails(BaseModel):
    """RFC 9457 problem."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str | None = None

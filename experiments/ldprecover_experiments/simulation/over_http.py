"""Rounds of a server: opened, estimated and recovered with the types of the core."""

import numpy as np

from ldprecover import Recovery, RecoveryRequest, RoundParameters
from ldprecover_client import Client, RoundStatus
from ldprecover_experiments.simulation.poisoned_round import Vector


def open_round(server: Client, parameters: RoundParameters, name: str | None = None) -> RoundStatus:
    """Open a round with these parameters. Raises ClientError."""
    p = parameters
    return server.open_round(
        name=name, protocol=p.protocol, epsilon=p.epsilon, items=p.items, **p.own
    )


def estimate_on_server(server: Client, round: str) -> Vector:
    """Return the server's estimate of a round. Raises ClientError."""
    return np.asarray(server.frequencies(round).frequencies, dtype=np.float64)


def recover_on_server(server: Client, round: str, request: RecoveryRequest) -> Recovery:
    """Return the server's recovery of a round, without conclusions. Raises ClientError."""
    answer = server.recover(
        round,
        method=request.method,
        eta=request.eta,
        targets=list(request.targets),
        malicious_model=request.malicious_model,
    )
    columns = ("poisoned", "malicious", "genuine", "recovered")
    poisoned, malicious, genuine, recovered = (
        np.asarray(answer[name], dtype=np.float64) for name in columns
    )
    return Recovery(
        method=answer["method"],
        eta=answer["eta"],
        targets=tuple(answer["targets"]),
        malicious_sum=answer["malicious_sum"],
        poisoned=poisoned,
        malicious=malicious,
        genuine=genuine,
        recovered=recovered,
        notes=tuple(answer.get("notes", ())),
    )

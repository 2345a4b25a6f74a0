"""Experiment runs on a real server, which receives every report and recovers the round."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ldprecover import Recovery, RecoveryRequest, RoundParameters, Tally, frequency_oracle
from ldprecover.estimation.simulation import tally_of_counts
from ldprecover.protocols import crafter_of
from ldprecover_client import Client, RoundStatus, submit_reports
from ldprecover_experiments.local_server import local_server
from ldprecover_experiments.measures import measure
from ldprecover_experiments.paper import estimators
from ldprecover_experiments.parameters import Cell
from ldprecover_experiments.poisoned_round import HASH_ONLY, PoisonedRound, RoundSimulation, Vector
from ldprecover_experiments.runs import Done, Work

_ANY_DOMAIN = 100
"""Number of items of an oracle of which only the protocol matters."""


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


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerRound(PoisonedRound):
    """A poisoned round of a running server, which recovers it."""

    server: Client
    id: str

    def recover(self, request: RecoveryRequest, *, with_reports: bool = True) -> Recovery:
        return recover_on_server(self.server, self.id, request)


def can_travel(cell: Cell) -> bool:
    """Return whether a server takes the cell's reports and needs no second look at them.

    OLH and similar protocols have no report that supports exactly one item; such reports exist as
    counts alone. OLH without its randomised response is no protocol of a server. Random subsets of
    users are drawn by the process that made the reports.
    """
    if cell.protocol == HASH_ONLY or cell.xi:
        return False
    others = crafter_of(frequency_oracle(cell.protocol, cell.epsilon, _ANY_DOMAIN)).encoded_others
    return not (others != 0 and cell.model == "one-hot" and cell.beta > 0)


def run_over_http(cells: Sequence[Cell], work: Work) -> Generator[Done, None, None]:
    """Yield each cell with its outcomes, run on a temporary server."""
    with local_server() as running, Client(running.url, key=running.key) as server:
        for cell in cells:
            simulation = RoundSimulation(cell, work.users_by_data[cell.data], work.seed)
            with round_over_http(simulation, server, running.key) as round_:
                outcomes = measure(round_, estimators(round_, trial=cell.trial), cell.eta)
                yield [(cell, list(outcomes))]


@contextmanager
def round_over_http(simulation: RoundSimulation, server: Client, key: str) -> Iterator[ServerRound]:
    """Have all users of a plan report to a new round, and delete the round at the end."""
    oracle = simulation.oracle
    opened = open_round(
        server, RoundParameters(oracle.protocol, oracle.epsilon, simulation.genuine_users.items)
    )

    def tally() -> Tally:
        estimates = server.frequencies(opened.id)
        return tally_of_counts(oracle, estimates.counts, estimates.n)

    try:
        submit_reports(server.url, opened.id, simulation.genuine_reports(), key=key)
        genuine = tally()
        submit_reports(server.url, opened.id, simulation.malicious_reports(), key=key)
        yield ServerRound(
            oracle,
            simulation.genuine_users.frequencies,
            genuine,
            tally() - genuine,
            simulation.targets,
            server=server,
            id=opened.id,
        )
    finally:
        server.delete_round(opened.id)

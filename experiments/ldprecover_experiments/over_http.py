"""Cells through a real server: every report is made, sent and counted there, and the server
recovers.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ldprecover import RoundParameters, Tally, frequency_oracle
from ldprecover_client import Client, RoundStatus, submit_reports
from ldprecover_experiments.local_server import local_server
from ldprecover_experiments.measures import Recoverer, outcomes
from ldprecover_experiments.parameters import Cell
from ldprecover_experiments.poisoned_round import HASH_ONLY, Plan, PoisonedRound, Targets, Vector
from ldprecover_experiments.runs import Done, Work

_MANY = 100  # items, of which a report that supports more than its own would support some


def open_round(server: Client, parameters: RoundParameters, name: str | None = None) -> RoundStatus:
    """Open a round with these parameters. Raises ClientError."""
    p = parameters
    return server.open_round(
        name=name, protocol=p.protocol, epsilon=p.epsilon, items=p.items, **p.own
    )


def can_travel(cell: Cell) -> bool:
    """Whether reports of the cell exist that a server takes, and whose recovery needs no second
    look at them.

    Of some protocols, as OLH, reports that support exactly one item exist as counts alone. OLH
    without its randomised response is not a protocol of a server, and random subsets of users are
    drawn where the reports were made.
    """
    if cell.protocol == HASH_ONLY or cell.xi:
        return False
    others = frequency_oracle(cell.protocol, cell.epsilon, _MANY).encoded_others()
    return not (others and cell.model == "one-hot" and cell.beta > 0)


def run_over_http(cells: Sequence[Cell], work: Work) -> Generator[Done, None, None]:
    """Yield the cells with their outcomes, one at a time, on a server that is started for them and
    goes with them.
    """
    with local_server() as running, Client(running.url, key=running.key) as server:
        for cell in cells:
            plan = Plan(cell, work.crowds[cell.data], work.seed)
            with round_over_http(plan, server, running.key) as (round_, recoverer):
                found = list(outcomes(round_, recoverer, eta=cell.eta, trial=cell.trial))
            yield [(cell, found)]


@contextmanager
def round_over_http(
    plan: Plan, server: Client, key: str
) -> Iterator[tuple[PoisonedRound, Recoverer]]:
    """Have all users of a plan report to a round of their own; yield what the server counted, and
    its recovery.
    """
    oracle = plan.oracle
    opened = open_round(server, RoundParameters(oracle.protocol, oracle.epsilon, plan.crowd.items))

    def tally() -> Tally:
        answer = server.frequencies(opened.id)
        return oracle.tally_of_counts(
            np.asarray(answer["counts"], dtype=np.int64), int(answer["n"])
        )

    def recoverer(
        method: str, eta: float, targets: Targets = (), malicious_model: str = "paper"
    ) -> tuple[Vector, Vector]:
        answer = server.recover(
            opened.id,
            method=method,
            eta=eta,
            targets=list(targets),
            malicious_model=malicious_model,
        )
        return np.asarray(answer["recovered"]), np.asarray(answer["malicious"])

    try:
        submit_reports(server.url, opened.id, plan.genuine_reports(), key=key)
        genuine = tally()
        submit_reports(server.url, opened.id, plan.malicious_reports(), key=key)
        yield (
            PoisonedRound(oracle, plan.crowd.frequencies, genuine, tally() - genuine, plan.targets),
            recoverer,
        )
    finally:
        server.delete_round(opened.id)

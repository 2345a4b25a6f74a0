"""Cells through a real server: every report is made, sent and counted there, and the server recovers."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import numpy as np

from ldprecover import Tally
from ldprecover_cli.demo.local_server import local_server
from ldprecover_cli.reproduce.cells import Cell, Crowd
from ldprecover_cli.reproduce.experiments import HASH_ONLY
from ldprecover_cli.reproduce.methods import Recoverer, Vector, outcomes
from ldprecover_cli.reproduce.runner import Done
from ldprecover_cli.reproduce.simulated import Plan, Round
from ldprecover_client import Server, submit_reports

__all__ = ["can_travel", "round_over_http", "run_over_http"]


def can_travel(cell: Cell) -> bool:
    """Whether reports of the cell exist that a server takes, and whose recovery needs no second look at them.

    OLH reports that support exactly one item exist as counts alone, OLH without its randomised response is
    no protocol of a server, and random subsets of users are drawn where the reports were made.
    """
    one_hot = cell.protocol == "olh" and cell.model == "one-hot" and cell.beta > 0
    return not (one_hot or cell.protocol == HASH_ONLY or cell.xi)


def run_over_http(cells: list[Cell], crowds: dict[str, Crowd], seed: int) -> Generator[Done, None, None]:
    """Yield the cells with their outcomes, one at a time, on a server that is started for them and goes with them."""
    with local_server() as running, Server(running.url, key=running.key) as server:
        for cell in cells:
            with round_over_http(Plan(cell, crowds[cell.data], seed), server, running.key) as (round_, recoverer):
                found = list(outcomes(round_, cell, recoverer))
            yield [(cell, found)]


@contextmanager
def round_over_http(plan: Plan, server: Server, key: str) -> Iterator[tuple[Round, Recoverer]]:
    """Have all users of a plan report to a round of their own; yield what the server counted, and its recovery."""
    oracle = plan.oracle
    opened = server.open_round(
        protocol=oracle.protocol,
        epsilon=oracle.epsilon,
        items=plan.crowd.items,
        **oracle.own,
    )

    def tally() -> Tally:
        answer = server.frequencies(opened.id)
        return oracle.tally_of_counts(np.asarray(answer["counts"], dtype=np.int64), int(answer["n"]))

    def recoverer(
        method: str, eta: float, targets: tuple[int, ...] = (), malicious_model: str = "paper"
    ) -> tuple[Vector, Vector]:
        answer = server.recover(
            opened.id, method=method, eta=eta, targets=list(targets), malicious_model=malicious_model
        )
        return np.asarray(answer["recovered"]), np.asarray(answer["malicious"])

    try:
        submit_reports(server.url, opened.id, plan.genuine_reports(), key=key)
        genuine = tally()
        submit_reports(server.url, opened.id, plan.malicious_reports(), key=key)
        yield Round(oracle, plan.crowd.frequencies, genuine, tally() - genuine, plan.targets), recoverer
    finally:
        server.delete_round(opened.id)

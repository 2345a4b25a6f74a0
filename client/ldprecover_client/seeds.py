"""The seeds that tickets pick, in rounds whose seeds are given."""

from collections.abc import Sequence

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.rounds.tickets import ticket_draw
from ldprecover.types import Reports, UInt32Array
from ldprecover_client.calls import validate_ticket
from ldprecover_client.errors import ArgumentError


def with_tickets(oracle: FrequencyOracle, tickets: Sequence[str]) -> FrequencyOracle:
    """Return the protocol as the holders of these tickets have it: each report takes the next one's
    seed.

    Where no seeds are given it is the protocol itself. Raises ArgumentError for what cannot be a
    ticket.
    """
    return oracle if oracle.listed_seeds is None else oracle.with_seeds(_seeds(oracle, tickets))


def tickets_of(oracle: FrequencyOracle, reports: Reports, tickets: Sequence[str]) -> Sequence[str]:
    """Return the tickets in the order of the reports whose seeds they pick, or as they are where
    none are given.

    Raises ArgumentError where they do not pick these seeds.
    """
    if oracle.listed_seeds is None:
        return tickets
    seeds, picked = oracle.seeds(reports), _seeds(oracle, tickets)
    places, order = np.argsort(seeds, kind="stable"), np.argsort(picked, kind="stable")
    if not np.array_equal(seeds[places], picked[order]):
        raise ArgumentError("the tickets do not pick the seeds of the reports")
    sorted_tickets = np.empty(len(tickets), np.int64)
    sorted_tickets[places] = order
    return [tickets[place] for place in sorted_tickets.tolist()]


def _seeds(oracle: FrequencyOracle, tickets: Sequence[str]) -> UInt32Array:
    return np.array(
        [oracle.seed_of(ticket_draw(validate_ticket(ticket))) for ticket in tickets], np.uint32
    )

"""The seeds that tickets assign, in rounds with assigned seeds."""

from collections.abc import Sequence

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.rounds.tickets import ticket_bits
from ldprecover.types import Reports, UInt32Array
from ldprecover_client.calls import validate_ticket
from ldprecover_client.errors import ArgumentError


def with_tickets(oracle: FrequencyOracle, tickets: Sequence[str]) -> FrequencyOracle:
    """Return the protocol of the holders of these tickets: each report takes the next one's seed.

    Without assigned seeds it is the protocol itself. Raises ArgumentError for a malformed ticket.
    """
    return oracle.with_seeds(_seeds(oracle, tickets)) if oracle.assigned_seeds else oracle


def tickets_of(oracle: FrequencyOracle, reports: Reports, tickets: Sequence[str]) -> Sequence[str]:
    """Return the tickets in the order of the reports whose seeds they assign.

    Without assigned seeds they keep their order. Raises ArgumentError if the seeds are others.
    """
    if not oracle.assigned_seeds:
        return tickets
    seeds, assigned = oracle.seeds(reports), _seeds(oracle, tickets)
    places, order = np.argsort(seeds, kind="stable"), np.argsort(assigned, kind="stable")
    if not np.array_equal(seeds[places], assigned[order]):
        raise ArgumentError("the tickets assign other seeds than those of the reports")
    sorted_tickets = np.empty(len(tickets), np.int64)
    sorted_tickets[places] = order
    return [tickets[place] for place in sorted_tickets.tolist()]


def _seeds(oracle: FrequencyOracle, tickets: Sequence[str]) -> UInt32Array:
    return np.array(
        [oracle.seed_of(ticket_bits(validate_ticket(ticket))) for ticket in tickets], np.uint32
    )

"""The pseudorandom bits of a ticket, from its MAC, and the round of a form that they assign."""

import base64

_BITS = 8  # bytes of the MAC


def ticket_bits(ticket: str) -> int:
    """Return the first 64 bits of the MAC of a ticket `id.mac`, little-endian.

    They are uniform, and unknown without the server's secret until the ticket is made.
    """
    mac = ticket.partition(".")[2]
    return int.from_bytes(base64.urlsafe_b64decode(f"{mac}==")[:_BITS], "little")


def assigned_round(ticket: str, rounds: int) -> int:
    """Return the index of the one round, of the `rounds` of a form, that the ticket is for.

    It is uniform: the probability of a round differs from 1/rounds by less than 2^-64.
    """
    return ticket_bits(ticket) % rounds

"""The pseudorandom bits of a ticket, from its MAC."""

import base64

_BITS = 8  # bytes of the MAC


def ticket_bits(ticket: str) -> int:
    """Return the first 64 bits of the MAC of a ticket `id.mac`, little-endian.

    They are uniform, and unknown without the server's secret until the ticket is made.
    """
    mac = ticket.partition(".")[2]
    return int.from_bytes(base64.urlsafe_b64decode(f"{mac}==")[:_BITS], "little")

"""What a ticket picks: the draw that its MAC makes."""

import base64

_BITS = 8  # bytes of the MAC


def ticket_draw(ticket: str) -> int:
    """Return the draw of a ticket `id.mac`: the first 64 bits of its MAC, little-endian.

    They are uniform, and nobody without the server's secret knows them before the ticket is made.
    """
    mac = ticket.partition(".")[2]
    return int.from_bytes(base64.urlsafe_b64decode(f"{mac}==")[:_BITS], "little")

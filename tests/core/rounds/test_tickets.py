"""A ticket's draw: the first 64 bits of its MAC."""

import base64

import pytest

from ldprecover.rounds.tickets import assigned_round, ticket_bits


def text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("mac", "draw"),
    [
        (bytes(16), 0),
        (b"\1" + bytes(15), 1),
        (b"\xff" * 8 + bytes(8), (1 << 64) - 1),
        (bytes(8) + b"\xff" * 8, 0),
    ],
)
def test_the_draw_is_the_first_eight_bytes_little_endian(mac: bytes, draw: int) -> None:
    for id in (bytes(16), bytes(range(16))):
        ticket = f"{text(id)}.{text(mac)}"
        assert ticket_bits(ticket) == draw
        assert [assigned_round(ticket, k) for k in (1, 50)] == [0, draw % 50]

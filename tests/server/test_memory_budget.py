"""What the requests of callers without a key hold while they are worked on."""

import pytest

from ldprecover_server.errors import BusyError
from ldprecover_server.http.dependencies import Decoded


def test_large_requests_are_taken_while_there_is_room_and_again_once_there_is() -> None:
    decoded = Decoded(10_000)
    with decoded.hold(6_000):
        with pytest.raises(BusyError), decoded.hold(6_000):
            pytest.fail("it has no room")
        with decoded.hold(4_000):
            pass
    with decoded.hold(10_000):
        pass


def test_a_small_request_is_taken_whoever_asks_much() -> None:
    decoded = Decoded(10_000)
    with decoded.hold(10_000), decoded.hold(100):
        pass


def test_a_request_that_fails_gives_its_room_back() -> None:
    decoded = Decoded(10_000)
    with pytest.raises(ZeroDivisionError), decoded.hold(10_000):
        raise ZeroDivisionError
    with decoded.hold(10_000):
        pass

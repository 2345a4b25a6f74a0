"""Servers to attack behind the proxy, and sockets enough to do it."""

import contextlib
from collections.abc import Callable, Iterator

import pytest
from tests.conftest import StartServer
from tests.proxied import proxied
from tests.system.anonymous.report import SHUTDOWN_SECONDS
from tests.system.anonymous.target import Target

NewTarget = Callable[..., Target]


@pytest.fixture
def new_target(start_server: StartServer) -> Iterator[NewTarget]:
    """Start a server to attack and the proxy before it, with settings by name."""
    with contextlib.ExitStack() as stack:

        def start(**settings: object) -> Target:
            server = start_server(
                **{"analyses": 2, "shutdown_seconds": SHUTDOWN_SECONDS, **settings}
            )
            return Target(server, stack.enter_context(proxied(server.http.base_url.port or 0)))

        yield start

"""Servers to attack behind the proxy, and sockets enough to do it."""

import contextlib
import resource
from collections.abc import Callable, Iterator

import pytest
from tests.conftest import StartServer
from tests.proxied import proxied
from tests.system.anonymous.report import SHUTDOWN_SECONDS
from tests.system.anonymous.target import Target

NewTarget = Callable[..., Target]


@pytest.fixture(scope="session", autouse=True)
def many_sockets() -> Iterator[None]:
    """Let this process, and the servers it starts, have thousands of sockets, where the system lets
    it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 20_000 if hard == resource.RLIM_INFINITY else min(20_000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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

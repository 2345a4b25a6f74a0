"""Servers to attack, and sockets enough to do it."""

import resource
from collections.abc import Callable, Iterator

import pytest
from tests.conftest import StartServer
from tests.system.anonymous.report import SHUTDOWN_SECONDS
from tests.system.anonymous.target import Target

NewTarget = Callable[..., Target]


@pytest.fixture(scope="session", autouse=True)
def many_sockets() -> Iterator[None]:
    """Let this process, and the servers it starts, have thousands of sockets, where the system lets
    it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def new_target(start_server: StartServer) -> NewTarget:
    """Start a server to attack, with settings by name."""

    def start(**settings: object) -> Target:
        return Target(
            start_server(**{"analyses": 2, "shutdown_seconds": SHUTDOWN_SECONDS, **settings})
        )

    return start

"""A drill on a free port, served by a thread of the tests' own."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import httpx
import pytest
from starlette.types import ASGIApp
from tests.conftest import ServerProcess

from ldprecover_experiments import DemoSettings
from ldprecover_experiments.drill.guard import HEADER
from ldprecover_experiments.drill.jobs import Job
from ldprecover_experiments.drill.server import DrillServer, drill_server

DRILL_TOKEN = "a-token-of-a-drill"


class RunningDrill:
    """A drill and a caller of it, who has the token."""

    def __init__(self, drill: DrillServer) -> None:
        self.url = drill.url
        self.jobs = drill.application.jobs
        self.http = httpx.Client(
            base_url=drill.url, headers={HEADER: DRILL_TOKEN}, timeout=60, trust_env=False
        )

    def ended(self) -> dict[str, Any]:
        """Wait until the run is over, and return what is shown of it."""
        run = self.jobs.last
        assert run is not None
        assert run.over.wait(60)
        return self.http.get("/drill/run").json()


@contextlib.contextmanager
def running_drill(
    server: ASGIApp | str, key: str = "key", **settings: Any
) -> Iterator[RunningDrill]:
    """Run a drill on a server for a while; `settings` fill its form."""
    settings = {"users": 2000, "targets": 3, **settings}
    with (
        mock.patch("secrets.token_urlsafe", return_value=DRILL_TOKEN),
        drill_server(server, key, DemoSettings(**settings), host="127.0.0.1", port=0) as drill,
    ):
        thread = threading.Thread(target=drill.run, args=([drill.listener],))
        thread.start()
        running = RunningDrill(drill)
        try:
            yield running
        finally:
            running.http.close()
            drill.should_exit = True
            thread.join()


StartDrill = Callable[..., RunningDrill]


@pytest.fixture(scope="module")
def start_drill() -> Iterator[StartDrill]:
    """Start drills in front of a server; all are gone at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **settings: stack.enter_context(running_drill(*args, **settings))


@pytest.fixture(scope="module")
def drill(start_drill: StartDrill, server: ServerProcess) -> RunningDrill:
    """A drill in front of the server that all tests share."""
    return start_drill(server.url, server.admin_key)


@pytest.fixture
def run() -> Job:
    """A run that nobody watches."""
    return Job("round", {}, ("first", "second"))

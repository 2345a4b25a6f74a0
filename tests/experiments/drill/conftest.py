"""A drill on a free port, served by a thread of the tests' own."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from tests.conftest import ServerProcess

from ldprecover_experiments import DemoSettings
from ldprecover_experiments.drill.app import DrillApplication
from ldprecover_experiments.drill.form import FormChoices
from ldprecover_experiments.drill.guard import HEADER
from ldprecover_experiments.drill.jobs import Job

DRILL_TOKEN = "a-token-of-a-drill"


class RunningDrill:
    """A drill and a caller of it, who has the token."""

    def __init__(self, url: str, application: DrillApplication) -> None:
        self.url = url
        self.application = application
        self.http = httpx.Client(
            base_url=url, headers={HEADER: DRILL_TOKEN}, timeout=60, trust_env=False
        )

    def ended(self) -> dict[str, Any]:
        """Wait until the run is over, and return what is shown of it."""
        run = self.application.jobs.last
        assert run is not None
        assert run.over.wait(60)
        return self.http.get("/drill/run").json()


@contextlib.contextmanager
def running_drill(url: str, key: str = "key", **settings: Any) -> Iterator[RunningDrill]:
    """Run a drill in front of a server for a while; `settings` fill its form."""
    offer = FormChoices(DemoSettings(**{"users": 2000, "targets": 3, **settings}))
    application = DrillApplication(url, key, DRILL_TOKEN, offer)
    config = uvicorn.Config(application, log_config=None, log_level="warning", ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        drill = RunningDrill(f"http://127.0.0.1:{listener.getsockname()[1]}", application)
        try:
            yield drill
        finally:
            drill.http.close()
            server.should_exit = True
            thread.join()


StartDrill = Callable[..., RunningDrill]


@pytest.fixture(scope="module")
def start_drill() -> Iterator[StartDrill]:
    """Start drills in front of a server; all are gone at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda *given, **settings: stack.enter_context(running_drill(*given, **settings))


@pytest.fixture(scope="module")
def drill(start_drill: StartDrill, server: ServerProcess) -> RunningDrill:
    """A drill in front of the server that all tests share."""
    return start_drill(server.url, server.admin_key)


@pytest.fixture
def run() -> Job:
    """A run that nobody watches."""
    return Job("round", {})

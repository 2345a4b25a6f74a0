"""The application in this process, for failures that a real server would have to be talked into."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from pydantic import SecretStr
from tests.conftest import ADMIN_KEY, Calls, NewDatabase, on_both_databases

from ldprecover import FrequencyOracle, frequency_oracle
from ldprecover.protocols import PROTOCOLS
from ldprecover_interface.problems import ProblemType
from ldprecover_server import Settings, create_app
from ldprecover_server.ingest.writer import Ingest
from ldprecover_server.limits import SharedCall
from ldprecover_server.storage import Storage

T = TypeVar("T")

pytest_generate_tests = on_both_databases


class InProcess(Calls):
    """The whole ASGI application over a storage on disk, called without sockets; its lifespan
    runs.
    """

    def __init__(self, url: str, *, practice: bool = False, **settings: Any) -> None:
        self.app = create_app(
            Settings(database_url=url, admin_key=SecretStr(ADMIN_KEY), **settings),
            practice=practice,
        )
        self.storage: Storage = self.app.state.storage
        self.readiness: SharedCall[Any] = self.app.state.services.submissions.readiness
        self.readiness.seconds = 0.0  # each call sees the present
        self.ingest: Ingest = self.app.state.ingest
        self._on_interrupt = signal.getsignal(signal.SIGINT)
        self._runner = asyncio.Runner()
        self._open = contextlib.AsyncExitStack()
        self.run(self._open.enter_async_context(self.app.router.lifespan_context(self.app)))
        transport = httpx.ASGITransport(self.app)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost")
        self.run(self._open.enter_async_context(self.http))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the application's event loop."""
        return self._runner.run(coroutine)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.run(self.http.request(method, path, **options))

    def gather(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Send requests (method, path, options) at the same time."""

        async def send() -> list[httpx.Response]:
            return await asyncio.gather(
                *(self.http.request(m, path, **options) for m, path, options in requests)
            )

        return self.run(send())

    def open_round(self, protocol: str = "grr", epsilon: float = 1.0, **fields: Any) -> str:
        """Open a round, over four items unless told otherwise, and return its id."""
        response = self.try_open(protocol, epsilon, **fields)
        assert response.status_code == 201, response.text
        return response.json()["id"]

    def close(self) -> None:
        with contextlib.closing(self._runner):
            self.run(self._open.aclose())
        # The lifespan gives back the handler that the runner had for its first call alone.
        signal.signal(signal.SIGINT, self._on_interrupt)


StartInProcess = Callable[..., InProcess]


@pytest.fixture
def start_in_process(
    tmp_path_factory: pytest.TempPathFactory, new_database: NewDatabase
) -> Iterator[StartInProcess]:
    """Start applications with settings by name; all are closed when the test ends."""
    with contextlib.ExitStack() as stack:

        def start(**settings: Any) -> InProcess:
            url = stack.enter_context(new_database(tmp_path_factory.mktemp("app")))
            return stack.enter_context(contextlib.closing(InProcess(url, **settings)))

        yield start


@pytest.fixture(scope="module")
def in_process(
    tmp_path_factory: pytest.TempPathFactory, new_database: NewDatabase
) -> Iterator[InProcess]:
    """One application with default settings for a module."""
    with (
        new_database(tmp_path_factory.mktemp("app")) as url,
        contextlib.closing(InProcess(url)) as app,
    ):
        yield app


@pytest.fixture(scope="module", params=list(PROTOCOLS))
def oracle(request: pytest.FixtureRequest) -> FrequencyOracle:
    """Each frequency oracle in turn, over a domain that leaves OUE padding bits.

    One of the session would have pytest run all tests of it before those of the next, and start the
    servers of session and modules again for each.
    """
    return frequency_oracle(request.param, 1.0, 11, 4 if request.param == "olh" else None)


STATUS = {problem.slug: problem.status for problem in ProblemType}
"""The errors page of the documentation records them."""


def problem_of(response: httpx.Response) -> str:
    """Check that a response is a whole problem with its status; return the slug of its type."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body = response.json()
    page, slug = urldefrag(urljoin(str(response.request.url), body["type"]))
    assert page == urljoin(str(response.request.url), "/docs/errors")
    assert response.status_code == body["status"] == STATUS[slug]
    assert body["title"]
    assert slug == "internal-error" or body["detail"]
    return slug

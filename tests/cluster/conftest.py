"""Rounds whose reports are written as datasets, and a Dask cluster."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import run as run  # a fixture
from tools.dask_cluster import DaskCluster

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import Reports
from ldprecover_cluster import Scheduler

D = 11


@pytest.fixture(scope="module", params=list(PROTOCOLS))
def parameters(request: pytest.FixtureRequest) -> RoundParameters:
    """A round of each protocol, over a domain that leaves padding bits."""
    return RoundParameters(request.param, 1.0, tuple(map(str, range(D))))


MakeRound = Callable[[int], tuple[RoundExport, Reports]]


def maker(parameters: RoundParameters) -> MakeRound:
    """Return a function that makes n honest reports and their export, with n as seed."""

    def make(n: int) -> tuple[RoundExport, Reports]:
        rng = np.random.default_rng(n)
        reports = parameters.oracle.perturb(rng.integers(0, D, n), rng)
        tally = Tally.of(parameters.oracle, reports)
        return RoundExport(f"R{n}", "letters", parameters, tally), reports

    return make


@pytest.fixture(scope="session", autouse=True)
def numpy_elsewhere() -> Iterator[None]:
    """Processes that tests start count with numpy, to the same bits, and need not load numba."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDPRECOVER_KERNELS", "numpy")
        yield


@pytest.fixture(scope="session")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A scheduler with two workers."""
    with closing(DaskCluster(tmp_path_factory.mktemp("dask"))) as cluster:
        cluster.start_worker()
        cluster.start_worker()
        yield cluster


@pytest.fixture(scope="session")
def scheduler(dask_cluster: DaskCluster) -> Scheduler:
    """The address of a scheduler with two workers."""
    return dask_cluster.address


@pytest.fixture
def broken_scheduler() -> Iterator[Scheduler]:
    """The address of a server that closes each connection; at a closed port Dask tries again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def close_connections() -> None:
            with suppress(OSError):  # the listener was shut down
                while True:
                    listener.accept()[0].close()

        thread = threading.Thread(target=close_connections)
        thread.start()
        yield Scheduler(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def make_any(parameters: RoundParameters) -> MakeRound:
    """Make a round of each protocol in turn."""
    return maker(parameters)


@pytest.fixture
def make_round() -> MakeRound:
    """Make a round of one protocol, whose reports have two columns."""
    return maker(RoundParameters("olh", 1.0, tuple(map(str, range(D)))))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path

"""Rounds whose reports are written as datasets."""

from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np
import pytest
from tests.dask_cluster import DaskCluster

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import Reports
from ldprecover_cluster import Scheduler

D = 11


@pytest.fixture(scope="module", params=list(PROTOCOLS))
def parameters(request: pytest.FixtureRequest) -> RoundParameters:
    """A round of each protocol in turn, over a domain that leaves padding bits."""
    return RoundParameters(request.param, 1.0, tuple(map(str, range(D))))


MakeRound = Callable[..., tuple[RoundExport, Reports]]


def maker(parameters: RoundParameters) -> MakeRound:
    """Return what makes a round of n honest reports: its export, and they. Seeded."""

    def make(n: int, name: str = "letters") -> tuple[RoundExport, Reports]:
        rng = np.random.default_rng(n)
        reports = parameters.oracle.perturb(rng.integers(0, D, n), rng)
        return RoundExport(f"R{n}", name, parameters, Tally.of(parameters.oracle, reports)), reports

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
    return Scheduler(dask_cluster.url)


@pytest.fixture
def make_any(parameters: RoundParameters) -> MakeRound:
    """Make a round of each protocol in turn."""
    return maker(parameters)


@pytest.fixture
def make_round() -> MakeRound:
    """Make a round of one protocol, whose reports have two columns."""
    return maker(RoundParameters("olh", 1.0, tuple(map(str, range(D)))))

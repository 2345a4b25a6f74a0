"""Analyses of the server on a cluster: equal results, from workers within their limits."""

import asyncio
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.server.analysis.conftest import REPORTS, TALLY, alarms, recovery, running_pool
from tools.dask_cluster import DaskCluster

from ldprecover import Tally
from ldprecover_cluster import Scheduler
from ldprecover_server.analysis.tasks import RecoverResult, unpack
from ldprecover_server.analysis.worker import Cluster
from ldprecover_server.analysis.worker_pool import Prepare
from ldprecover_server.errors import AnalysisFailedError, AnalysisTimeoutError, ConfigurationError
from ldprecover_server.settings import Settings

pytest.importorskip(
    "distributed", reason="the extra `cluster` is not installed: no analysis runs on a cluster"
)


def diffstats(copies: int = 1) -> Prepare:
    """An analysis of the reports in two pieces, divided inside a report."""
    data = REPORTS.tobytes() * copies
    tally = Tally(TALLY.summary * copies, TALLY.n * copies)
    return lambda: (recovery("diffstats", tally=tally), [data[:1001], data[1001:]])


@pytest.mark.anyio
async def test_a_cluster_gives_equal_results_repeatedly(scheduler: Scheduler) -> None:
    async def results(cluster: Cluster | None, number: int) -> list[RecoverResult]:
        async with running_pool(count=1, cluster=cluster) as pool:
            return [unpack(RecoverResult, await pool.run(diffstats())) for _ in range(number)]

    (local,) = await results(None, 1)
    for result in await results(Cluster(scheduler, 1), 2):
        assert result.recovery.notes == local.recovery.notes
        assert result.recovery.recovered.tobytes() == local.recovery.recovered.tobytes()


@pytest.mark.anyio
async def test_a_lost_cluster_is_an_error_except_for_small_rounds(
    broken_scheduler: Scheduler,
) -> None:
    limit = REPORTS.size * 8 + 1  # a bit for each report and item, and one more
    async with running_pool(count=1, cluster=Cluster(broken_scheduler, limit)) as pool:
        with pytest.raises(
            AnalysisFailedError, match="the cluster that works on it was lost, or not found"
        ):
            await pool.run(diffstats(copies=2))
        await pool.run(diffstats())
        await pool.run(alarms())


def test_a_server_uses_a_cluster_over_tls_once_it_has_workers(tmp_path: Path) -> None:
    async def run_without_workers(scheduler: Scheduler) -> None:
        async with running_pool(count=1, seconds=2, cluster=Cluster(scheduler, 1)) as pool:
            with pytest.raises(AnalysisTimeoutError, match="finish within 2 seconds"):
                await pool.run(diffstats())

    names = ("analysis_tls_ca", "analysis_tls_cert", "analysis_tls_key")
    with closing(DaskCluster(tmp_path)) as cluster:
        asyncio.run(run_without_workers(cluster.address))
        cluster.start_worker()
        settings = {
            "analysis_scheduler": cluster.url,
            "analysis_cluster_cells": "1",
            "analyses": "1",
            **dict(zip(names, cluster.tls, strict=True)),
        }
        with closing(ServerProcess(tmp_path, None, **settings)) as server:
            server.start()
            round = server.open_round("grr", domain_size=9)["id"]
            items = np.arange(90, dtype="<u4") % 9
            assert server.submit(round, items.tobytes(), key=server.admin_key).status_code == 202
            fields = {"method": "detection", "targets": ["0"]}
            response = server.http.post(f"/rounds/{round}/recover", json=fields)
            assert response.status_code == 200, response.text
            assert response.json()["recovered"] == pytest.approx([0.0] + [1 / 8] * 8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"analysis_scheduler": "tcp://10.0.0.1:8786"},
            "must be tls://HOST:PORT for another machine",
        ),
        ({"analysis_scheduler": "10.0.0.1"}, "must be tls://HOST:PORT or tcp"),
        ({"analysis_tls_ca": "ca.pem"}, "require analysis_scheduler, which is not set"),
        (
            {"analysis_scheduler": "tls://a:1", "analysis_tls_ca": "ca.pem"},
            "the certificate is missing",
        ),
    ],
)
def test_settings_reject_an_unsafe_scheduler(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Settings(**settings)  # type: ignore[arg-type]

"""Analyses of the server on a cluster: equal results, from workers within their limits."""

import asyncio
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.dask_cluster import DaskCluster, certificates, ended
from tests.server.analysis.conftest import REPORTS, alarms, recovery, running_pool

from ldprecover_cluster import Scheduler
from ldprecover_server.analysis.tasks import RecoverResult, unpack_recovery
from ldprecover_server.analysis.worker import Cluster
from ldprecover_server.analysis.worker_pool import Prepare
from ldprecover_server.errors import AnalysisFailedError, AnalysisTimeoutError, ConfigurationError
from ldprecover_server.settings import Settings

pytest.importorskip(
    "distributed", reason="the extra `cluster` is not installed: no analysis runs on a cluster"
)

NOBODY = Scheduler("tcp://127.0.0.1:9")  # discard: nobody listens there


def diffstats() -> Prepare:
    """The reports come in two pieces, of which no end is a report's."""
    data = REPORTS.tobytes()
    return lambda: (recovery("diffstats"), [data[:1001], data[1001:]])


@pytest.mark.anyio
async def test_an_answer_is_the_same_from_a_cluster_and_its_child_answers_again(
    scheduler: Scheduler,
) -> None:
    async def answers(cluster: Cluster | None) -> list[RecoverResult]:
        async with running_pool(count=1, cluster=cluster) as pool:
            return [unpack_recovery(await pool.run(diffstats())) for _ in range(2)]

    there = await answers(Cluster(scheduler, 1))
    (here, _) = await answers(None)
    for each in there:
        assert each.recovery.notes == here.recovery.notes
        assert each.recovery.recovered.tobytes() == here.recovery.recovered.tobytes()


@pytest.mark.anyio
async def test_a_cluster_that_is_gone_is_a_problem_and_small_rounds_do_without_it() -> None:
    async with running_pool(count=1, cluster=Cluster(NOBODY, 1)) as pool:
        with pytest.raises(
            AnalysisFailedError, match="the cluster that works on it was lost, or not found"
        ):
            await pool.run(diffstats())
    async with running_pool(count=1, cluster=Cluster(NOBODY, REPORTS.size * 8 + 1)) as pool:
        await pool.run(diffstats())
        await pool.run(alarms())


def test_a_cluster_without_workers_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    async def test(scheduler: Scheduler) -> None:
        async with running_pool(count=1, seconds=3, cluster=Cluster(scheduler, 1)) as pool:
            with pytest.raises(AnalysisTimeoutError, match="finish within 3 seconds"):
                await pool.run(diffstats())

    with closing(DaskCluster(tmp_path)) as cluster:
        asyncio.run(test(Scheduler(cluster.url)))


def test_a_server_reads_a_round_on_a_cluster_over_tls(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    names = ("analysis_tls_ca", "analysis_tls_cert", "analysis_tls_key")
    told = dict(zip(names, files, strict=True))
    with closing(DaskCluster(tmp_path, files)) as cluster:
        cluster.start_worker()
        told |= {"analysis_scheduler": cluster.url, "analysis_cluster_cells": "1", "analyses": "1"}
        with closing(ServerProcess(tmp_path, None, **told)) as server:
            server.start()
            round = server.open_round("grr", domain_size=9)["id"]
            items = np.arange(90, dtype="<u4") % 9
            assert server.submit(round, items.tobytes(), key=server.admin_key).status_code == 202
            asked = {"method": "detection-any", "targets": ["0"]}
            answer = server.http.post(f"/rounds/{round}/recover", json=asked)
            assert answer.status_code == 200, answer.text
            assert answer.json()["recovered"] == pytest.approx([0.0] + [1 / 8] * 8)
            ended(cluster.scheduler)
            # Another request, because the result of the first one is cached.
            answer = server.http.post(f"/rounds/{round}/recover", json=asked | {"targets": ["1"]})
            assert answer.json()["detail"] == "the cluster that works on it was lost, or not found"


@pytest.mark.parametrize(
    ("given", "said"),
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
def test_a_server_does_not_start_with_a_scheduler_that_it_may_not_reach(
    given: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Settings(**given)  # type: ignore[arg-type]

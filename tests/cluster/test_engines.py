"""Engines give the same numbers from this process, from others and from a Dask cluster, whichever
process is killed meanwhile.
"""

import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tools.dask_cluster import DaskCluster

from ldprecover import (
    FrequencyOracle,
    ParameterError,
    Recovery,
    RecoveryRequest,
    RoundParameters,
    Tally,
    recover,
)
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import METHODS, ReportSource
from ldprecover.recovery import reports as recovery_reports
from ldprecover.types import Reports
from ldprecover_attacker import MGA
from ldprecover_cluster import EngineError, InMemoryPart, Scheduler, dask_executor, engine
from ldprecover_cluster.dask_executor import tls_security
from ldprecover_cluster.executor import TranslatingExecutor
from ldprecover_cluster.tasks import Task, run

pytest.importorskip(
    "distributed", reason="the extra `cluster` is not installed: no engine works on other machines"
)

D, N, M = 30, 3_000, 400
TARGETS = (3, 7, 11, 19, 22, 28)
ORACLES = {name: RoundParameters(name, 1.0, tuple(map(str, range(D)))).oracle for name in PROTOCOLS}
OPTIONS = {"k-means": {"subsets": 4}, "ldprecover-km": {"subsets": 4}, "em": {"iterations": 3}}
FITTING = [
    (protocol, name)
    for protocol, oracle in ORACLES.items()
    for name, method in METHODS.items()
    if "reports" in method.needs and method.unfit(oracle) is None
]
CASES = {
    *{protocol: (protocol, name) for protocol, name in FITTING}.values(),
    *{name: (protocol, name) for protocol, name in FITTING}.values(),
}
"""Each protocol with one method that reads reports, and each such method with one protocol."""


@pytest.fixture(autouse=True)
def _few_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers add the results of two or three tasks, not only of more than 64."""
    monkeypatch.setattr(recovery_reports, "_MOST_SUMS", 2)


@pytest.fixture(scope="module")
def executors(scheduler: Scheduler) -> Iterator[list[Executor | None]]:
    """Two processes, and two workers of a cluster."""
    with engine(2) as pool, engine(scheduler=scheduler) as cluster:
        yield [pool, cluster]


def poisoned(oracle: FrequencyOracle) -> Reports:
    """Return N honest reports and M crafted ones, shuffled. Seeded."""
    rng = np.random.default_rng(5)
    rows = np.concatenate(
        [oracle.perturb(rng.integers(0, D, N), rng), MGA(TARGETS).reports(oracle, M, rng)]
    )
    rng.shuffle(rows)
    return rows


def in_parts(oracle: FrequencyOracle, rows: Reports, number: int = 5) -> list[InMemoryPart]:
    parts = np.array_split(rows, number)
    return [InMemoryPart(part.tobytes(), oracle.wire.dtype) for part in parts]


def recovered(protocol: str, name: str, executor: Executor | None) -> Recovery | str:
    """Return a recovery of poisoned reports, or the message of its error."""
    oracle = ORACLES[protocol]
    rows = poisoned(oracle)
    tally = Tally.of(oracle, rows)
    source = ReportSource.of_parts(oracle, in_parts(oracle, rows), executor=executor, apart=True)
    targets = TARGETS[:1] if name == "conditional-probability" else TARGETS
    request = RecoveryRequest(name, targets=targets, options=OPTIONS.get(name, {}))
    try:
        return recover(oracle, source, request, tally=tally)
    except ParameterError as error:
        return str(error)


@pytest.mark.parametrize(("protocol", "name"), sorted(CASES))
def test_every_engine_gives_the_same_recovery(
    protocol: str, name: str, executors: list[Executor]
) -> None:
    local = recovered(protocol, name, None)
    for executor in executors:
        result = recovered(protocol, name, executor)
        if isinstance(local, str) or isinstance(result, str):
            assert result == local
            continue
        assert (result.notes, result.eta) == (local.notes, local.eta)
        for column in ("malicious", "genuine", "recovered"):
            expected, values = getattr(local, column), getattr(result, column)
            if name == "em":  # float products depend on the libraries of a process
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-15)
            else:
                assert values.tobytes() == expected.tobytes()


def test_em_repeats_to_the_bit_on_a_cluster(executors: list[Executor]) -> None:
    first, second = (recovered("olh", "em", executors[1]) for _ in range(2))
    assert isinstance(first, Recovery)
    assert isinstance(second, Recovery)
    assert first.recovered.tobytes() == second.recovered.tobytes()


def test_workers_add_the_results_of_a_pass(scheduler: Scheduler) -> None:
    """Two sums of 40 tasks reach this process."""
    oracle = ORACLES["olh"]
    rows = poisoned(oracle)
    results: list[object] = []

    def loads(data: bytes) -> object:
        results.append(pickle.loads(data))
        return results[-1]

    with engine(scheduler=scheduler) as executor:
        assert isinstance(executor, TranslatingExecutor)
        executor._decode = loads
        source = ReportSource.of_parts(
            oracle, in_parts(oracle, rows, 40), executor=executor, apart=True
        )
        assert source.tally() == Tally.of(oracle, rows)
    assert [type(result) for result in results] == [Tally, Tally]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class _Deadly(InMemoryPart):
    """A part that kills its reader; with a flag all of its session, until that file exists."""

    flag: Path | None = None

    def arrays(self) -> Iterator[Reports]:
        if self.flag is None:
            _die()
        elif not self.flag.exists():
            self.flag.touch()
            os.killpg(0, signal.SIGKILL)
        yield from super().arrays()


def test_a_killed_worker_and_nanny_lose_no_report(
    dask_cluster: DaskCluster, tmp_path: Path
) -> None:
    oracle = ORACLES["olh"]
    rows = poisoned(oracle)
    parts = in_parts(oracle, rows, 8)
    parts[5] = _Deadly(parts[5].data, parts[5].dtype, tmp_path / "killed")
    with engine(scheduler=dask_cluster.address) as executor:
        tally = ReportSource.of_parts(oracle, parts, executor=executor, apart=True).tally()
    (dead,) = (nanny for nanny in dask_cluster.workers if nanny.poll() is not None)
    dask_cluster.workers.remove(dead)
    dask_cluster.start_worker()
    assert tally == Tally.of(oracle, rows)


def done(call: Callable[[], object], jobs: int = 1, scheduler: Scheduler | None = None) -> object:
    """Return the result of a call in a worker of an engine."""
    with engine(jobs, scheduler) as executor:
        assert executor is not None
        return executor.submit(call).result()


def test_failures_of_a_cluster_are_errors_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This cluster gives a task to one worker only."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    with closing(DaskCluster(tmp_path)) as cluster:
        scheduler, messages = cluster.address, list[str]()
        with engine(scheduler=scheduler, notify=messages.append):
            pass
        assert messages == [f"The scheduler {cluster.url} has no workers yet; waiting for them."]
        cluster.start_worker()
        with pytest.raises(EngineError, match="a task has killed every worker that ran it"):
            done(_die, scheduler=scheduler)
        with pytest.raises(EngineError, match="was lost"):
            done(partial(os.kill, cluster.scheduler.pid, signal.SIGKILL), scheduler=scheduler)
        monkeypatch.setattr(dask_executor, "_TIMEOUT", 0.5)
        with pytest.raises(EngineError, match=f"the scheduler {cluster.url} cannot be reached: "):
            done(_die, scheduler=scheduler)


def test_a_killed_process_is_not_an_error_of_the_method() -> None:
    oracle = ORACLES["oue"]
    parts = [_Deadly(part.data, part.dtype) for part in in_parts(oracle, poisoned(oracle))]
    with engine(2) as pool:
        source = ReportSource.of_parts(oracle, parts, executor=pool, apart=True)
        with pytest.raises(EngineError, match="a worker process has died: it was killed"):
            recover(oracle, source, "diffstats", tally=Tally.of(oracle, poisoned(oracle)))


def test_processes_end_when_their_parent_is_killed() -> None:
    """Also while they work."""
    program = """
import os, signal
from ldprecover_cluster import engine
if __name__ == "__main__":
    with engine(2) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(signal.pause)
        pool.submit(signal.pause)
        signal.pause()
"""
    command = [sys.executable, "-c", program]
    # On standard error multiprocessing says that it cleans up.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            assert select.select([worker], [], [], 60)[0], "it still runs"
        finally:
            os.close(worker)


def test_rejects_tls_without_files() -> None:
    with pytest.raises(EngineError, match="needs TLS: give a CA, a certificate and its key"):
        done(_die, scheduler=Scheduler("tls://127.0.0.1:9"))


def test_ctrl_c_leaves_no_tasks_on_a_cluster(scheduler: Scheduler) -> None:
    from distributed import Client

    oracle = ORACLES["oue"]
    rows = poisoned(oracle)
    parts = in_parts(oracle, rows, 40)

    def tally(progress: Callable[[int, int], None] | None) -> Tally:
        with engine(scheduler=scheduler) as executor:
            return ReportSource.of_parts(
                oracle, parts, executor=executor, progress=progress, apart=True
            ).tally()

    def interrupt(passes: int, read: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tally(interrupt)
    security = tls_security("client", scheduler.tls)
    with Client(scheduler.url, security=security, set_as_default=False) as client:
        while any(client.processing().values()) or any(client.has_what().values()):
            pass  # each call asks the scheduler; the loop ends once no task and result remains
    assert tally(None) == Tally.of(oracle, rows)


_starts = 0


def _start(number: int) -> None:
    global _starts
    _starts += number


def _start_count() -> int:
    return _starts


def _state() -> tuple[int, object, str | None]:
    return _starts, signal.getsignal(signal.SIGINT), os.environ.get("OMP_NUM_THREADS")


def test_processes_start_once_ignore_ctrl_c_and_use_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with engine(2, initializer=partial(_start, 1)) as pool:
        assert pool is not None
        states = [pool.submit(_state) for _ in range(9)]
        assert {future.result() for future in states} == {(1, signal.SIG_IGN, "1")}
        assert "OMP_NUM_THREADS" not in os.environ
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_each_worker_of_a_cluster_starts_once(scheduler: Scheduler) -> None:
    start = partial(_start, os.getpid())  # differs from other runs on this cluster
    with engine(scheduler=scheduler, initializer=start) as executor:
        assert executor is not None
        counts = [executor.submit(_start_count) for _ in range(9)]
        assert {future.result() for future in counts} == {os.getpid()}
    assert _starts == 0


def test_a_result_that_cannot_be_pickled_is_an_error_of_its_task(scheduler: Scheduler) -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        done(threading.Lock, scheduler=scheduler)


def test_a_worker_rejects_tasks_of_another_version() -> None:
    task = Task.of(_start_count, None)
    assert pickle.loads(run(task)) == _starts
    with pytest.raises(
        EngineError, match=r"the worker on .* has ldprecover .*, and this process has 0\.0\.0"
    ):
        run(Task("0.0.0", task.initializer, task.call))


def test_the_text_of_a_task_contains_no_report() -> None:
    """A worker logs the arguments of a failed task."""
    part = InMemoryPart(b"secret__", np.dtype("<u4"))
    task = Task.of(partial(Tally.of, part), None)  # type: ignore[arg-type]
    assert b"secret__" in task.call
    assert "secret__" not in repr((part, task))

"""Engines: the same numbers from this process, from others and from a Dask cluster, whoever is
killed meanwhile.
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
from tests.dask_cluster import DaskCluster

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
from ldprecover.types import Reports
from ldprecover_attacker import MGA
from ldprecover_cluster import EngineError, InMemoryPart, Scheduler, engine
from ldprecover_cluster.tasks import Task, run

pytest.importorskip(
    "distributed", reason="the extra `cluster` is not installed: no engine works on other machines"
)

D, N, M = 30, 3_000, 400
TARGETS = (3, 7, 11, 19, 22, 28)
ORACLES = {name: RoundParameters(name, 1.0, tuple(map(str, range(D)))).oracle for name in PROTOCOLS}
OPTIONS = {"k-means": {"subsets": 4}, "ldprecover-km": {"subsets": 4}, "em": {"iterations": 3}}
READING = [
    pytest.param(protocol, name, id=f"{name}-{protocol}")
    for protocol, oracle in ORACLES.items()
    for name, method in METHODS.items()
    if "reports" in method.needs and method.unfit(oracle) is None
]


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


def in_parts(oracle: FrequencyOracle, rows: Reports, number: int = 4) -> list[InMemoryPart]:
    return [
        InMemoryPart(part.tobytes(), oracle.wire.dtype) for part in np.array_split(rows, number)
    ]


def recovered(protocol: str, name: str, executor: Executor | None) -> Recovery | str:
    oracle = ORACLES[protocol]
    rows = poisoned(oracle)
    tally = Tally.of(oracle, rows)
    source = ReportSource.of_parts(oracle, in_parts(oracle, rows), executor=executor, apart=True)
    targets = TARGETS[:1] if name == "conditional-probability" else TARGETS
    frequencies, options = oracle.estimate(tally.counts(oracle), tally.n), OPTIONS.get(name, {})
    try:
        return recover(
            oracle,
            frequencies,
            RecoveryRequest(name, targets=targets, options=options),
            reports=source,
        )
    except ParameterError as error:
        return str(error)


@pytest.mark.parametrize(("protocol", "name"), READING)
def test_a_recovery_is_the_same_from_every_engine(
    protocol: str, name: str, executors: list[Executor]
) -> None:
    here = recovered(protocol, name, None)
    for executor in executors:
        there = recovered(protocol, name, executor)
        if isinstance(here, str) or isinstance(there, str):
            assert there == here
            continue
        assert (there.notes, there.eta) == (here.notes, here.eta)
        for column in ("malicious", "genuine", "recovered"):
            mine, other = getattr(here, column), getattr(there, column)
            if name == "em":  # products of floats are of whatever library a process has
                np.testing.assert_allclose(mine, other, rtol=0, atol=1e-15)
            else:
                assert mine.tobytes() == other.tobytes()


def test_em_repeats_to_the_bit_on_a_cluster(executors: list[Executor]) -> None:
    first, second = (recovered("olh", "em", executors[1]) for _ in range(2))
    assert isinstance(first, Recovery)
    assert isinstance(second, Recovery)
    assert first.recovered.tobytes() == second.recovered.tobytes()


@dataclass(frozen=True)
class _Deadly:
    """A part that kills whoever reads it first, with all processes of its session, and none after
    it.
    """

    part: InMemoryPart
    flag: Path

    @property
    def n(self) -> int:
        return self.part.n

    def arrays(self) -> Iterator[Reports]:
        try:
            self.flag.touch(exist_ok=False)
        except FileExistsError:
            yield from self.part.arrays()
        else:
            os.killpg(0, signal.SIGKILL)


def test_a_worker_and_its_nanny_that_are_killed_cost_no_report(
    dask_cluster: DaskCluster, tmp_path: Path
) -> None:
    oracle = ORACLES["olh"]
    rows = poisoned(oracle)
    parts = [
        _Deadly(part, tmp_path / f"{i == 5}") for i, part in enumerate(in_parts(oracle, rows, 8))
    ]
    (tmp_path / "False").touch()
    with engine(scheduler=Scheduler(dask_cluster.url)) as executor:
        tally = ReportSource.of_parts(oracle, parts, executor=executor, apart=True).tally()
    dead = [nanny for nanny in dask_cluster.workers if nanny.poll() is not None]
    for nanny in dead:
        dask_cluster.workers.remove(nanny)
        dask_cluster.start_worker()
    assert len(dead) == 1
    assert tally == Tally.of(oracle, rows)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def done(call: Callable[[], object], jobs: int = 1, scheduler: Scheduler | None = None) -> object:
    """Return what a worker of an engine returns."""
    with engine(jobs, scheduler) as executor:
        assert executor is not None
        return executor.submit(call).result()


def test_what_ends_every_worker_and_a_scheduler_that_is_killed_are_told_in_a_sentence(
    tmp_path: Path,
) -> None:
    """This cluster gives a task one worker alone."""
    environment = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with closing(DaskCluster(tmp_path, environment=environment)) as cluster:
        scheduler, messages = Scheduler(cluster.url), list[str]()
        with engine(scheduler=scheduler, notify=messages.append):
            pass
        assert messages == [f"The scheduler {cluster.url} has no workers yet; waiting for them."]
        cluster.start_worker()
        with pytest.raises(EngineError, match="a task has killed every worker that ran it"):
            done(_die, scheduler=scheduler)
        with pytest.raises(EngineError, match="was lost"):
            done(partial(os.kill, cluster.scheduler.pid, signal.SIGKILL), scheduler=scheduler)
        with pytest.raises(EngineError, match=f"the scheduler {cluster.url} cannot be reached: "):
            done(_die, scheduler=scheduler)


def test_a_process_that_is_killed_is_no_fault_of_the_method_that_waits_for_it(
    tmp_path: Path,
) -> None:
    oracle = ORACLES["oue"]
    rows = poisoned(oracle)
    parts = [_Killing(part) for part in in_parts(oracle, rows)]
    with engine(2) as pool:
        source = ReportSource.of_parts(oracle, parts, executor=pool, apart=True)
        with pytest.raises(EngineError, match="a worker process has died: it was killed"):
            recover(oracle, np.zeros(D), "diffstats", n=len(rows), reports=source)


@dataclass(frozen=True)
class _Killing:
    """A part that kills whoever reads it."""

    part: InMemoryPart

    @property
    def n(self) -> int:
        return self.part.n

    def arrays(self) -> Iterator[Reports]:
        _die()
        yield from ()


def test_processes_end_with_the_one_that_started_them_by_sigkill() -> None:
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
    # Its error output says that multiprocessing cleans up.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            assert select.select([worker], [], [], 60)[0], "it lives on"
        finally:
            os.close(worker)


def test_tls_without_files_is_refused_in_a_sentence() -> None:
    with (
        pytest.raises(EngineError, match="needs TLS: give a CA, a certificate and its key"),
        engine(scheduler=Scheduler("tls://127.0.0.1:9")),
    ):
        pass


def test_ctrl_c_leaves_a_cluster_without_tasks_and_the_next_run_works(scheduler: Scheduler) -> None:
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
    with Client(scheduler.url, set_as_default=False) as watching:
        while any(watching.processing().values()) or any(watching.has_what().values()):
            # each look asks the scheduler; neither tasks nor results are left, without end if they
            # were
            pass
    assert tally(None) == Tally.of(oracle, rows)


_begun = 0


def _begin(number: int) -> None:
    global _begun
    _begun += number


def _has_begun() -> int:
    return _begun


def _state() -> tuple[int, object, str | None]:
    return _begun, signal.getsignal(signal.SIGINT), os.environ.get("OMP_NUM_THREADS")


def test_processes_begin_once_never_see_ctrl_c_and_compute_in_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with engine(2, initializer=partial(_begin, 1)) as pool:
        assert pool is not None
        found = [pool.submit(_state) for _ in range(9)]
        assert {future.result() for future in found} == {(1, signal.SIG_IGN, "1")}
        assert "OMP_NUM_THREADS" not in os.environ
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_each_worker_of_a_cluster_begins_once(scheduler: Scheduler) -> None:
    begin = partial(_begin, os.getpid())  # of this run alone
    with engine(scheduler=scheduler, initializer=begin) as executor:
        assert executor is not None
        found = [executor.submit(_has_begun) for _ in range(9)]
        assert {future.result() for future in found} == {os.getpid()}
    assert _begun == 0


def test_what_cannot_be_pickled_is_an_error_of_its_task(scheduler: Scheduler) -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        done(threading.Lock, scheduler=scheduler)


def test_a_worker_of_another_version_says_so() -> None:
    task = Task.of(_has_begun, None)
    assert pickle.loads(run(task)) == _begun
    with pytest.raises(
        EngineError,
        match=r"the workers have ldprecover .*, and this process has 0\.0\.0",
    ):
        run(Task("0.0.0", task.initializer, task.call))


def test_what_a_worker_writes_of_a_task_holds_no_report() -> None:
    """A worker logs the arguments of what fails."""
    part = InMemoryPart(b"secret__", np.dtype("<u4"))
    assert b"secret__" in Task.of(partial(Tally.of, part), None).call  # type: ignore[arg-type]
    assert "secret__" not in repr((part, Task.of(partial(Tally.of, part), None)))  # type: ignore[arg-type]

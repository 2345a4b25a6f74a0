"""Worker processes: their limits, their ends and their admission."""

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.server.analysis.conftest import (
    ORACLE,
    REPORTS,
    TALLY,
    alarms,
    alarms_task,
    begin,
    endless,
    pids_of,
    recovery,
    running_pool,
)

from ldprecover import ParameterError, RecoveryRequest, Tally, frequency_oracle, recover
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import Recovery
from ldprecover.reports import ReportSource
from ldprecover_server.analysis import tasks
from ldprecover_server.analysis.tasks import AlarmsResult, Task, unpack
from ldprecover_server.analysis.worker_pool import WorkerPool, environment
from ldprecover_server.errors import (
    AnalysesBusyError,
    AnalysisFailedError,
    AnalysisTimeoutError,
    AnalysisTooLargeError,
    ReportsGoneError,
)

pytestmark = pytest.mark.anyio

KERNELS = "LDPRECOVER_KERNELS"


def with_pieces(task: Task, piece: bytes) -> tuple[Task, list[bytes]]:
    return task, [piece]


@pytest.fixture(scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    """A pool of one worker, for tests after which it works on."""
    async with running_pool(count=1) as pool:
        yield pool


async def only_worker(pool: WorkerPool) -> int:
    """Run a task in the only worker, and return its process id."""
    await pool.run(alarms(), keyed=True)
    (pid,) = pids_of(pool)
    return pid


async def test_worker_starts_with_its_first_task_and_stays() -> None:
    async with running_pool(count=2) as pool:
        assert pids_of(pool) == set()
        await pool.run(alarms())
        assert len(first := pids_of(pool)) == 1
        await pool.run(alarms())
        assert pids_of(pool) == first


async def test_worker_results_equal_direct_computation() -> None:
    async with running_pool() as pool:
        result = unpack(AlarmsResult, await pool.run(alarms()))
        pieces = [REPORTS[start : start + 700].tobytes() for start in range(0, len(REPORTS), 700)]
        recovered = unpack(Recovery, await pool.run(lambda: (recovery("diffstats"), pieces)))
    assert (result.n, result.reports_read) == (len(REPORTS), True)
    assert result.alarms == raise_alarms(ORACLE, TALLY, ReportSource(ORACLE, REPORTS))
    expected = recover(ORACLE, REPORTS, "diffstats")
    assert recovered.notes == expected.notes
    assert recovered.targets == expected.targets
    for name in ("poisoned", "malicious", "genuine", "recovered"):
        assert getattr(recovered, name).tolist() == getattr(expected, name).tolist(), name


async def test_loads_numba_for_many_reports_beside_the_memory_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Loading it takes three times the memory that these analyses may."""
    monkeypatch.delenv(KERNELS, raising=False)
    oracle = frequency_oracle("olh", 1.0, 64)
    reports = oracle.perturb(
        np.random.default_rng(1).integers(64, size=3_000), np.random.default_rng(2)
    )
    few = Tally.of(oracle, reports)
    many = Tally(
        few.summary * 6_000, few.n * 6_000
    )  # 2^30 hashes; what is sent of them makes no difference

    async with running_pool(count=1, memory_bytes=1 << 25) as pool:
        answers, loaded = [], []
        for tally in (few, many, few):
            task = recovery("detection", oracle=oracle, tally=tally, targets=(3,))
            answers.append(await pool.run(partial(with_pieces, task, reports.tobytes())))
            loaded.append("llvmlite" in Path(f"/proc/{min(pids_of(pool))}/maps").read_text())
    assert loaded == [False, True, True]
    assert len({unpack(Recovery, answer).recovered.tobytes() for answer in answers}) == 1


@pytest.mark.parametrize(
    ("of_the_server", "of_a_worker"),
    [({}, "late"), ({KERNELS: "numba"}, "late"), ({KERNELS: "numpy"}, "numpy")],
)
def test_workers_do_without_numba_like_their_server(
    of_the_server: dict[str, str], of_a_worker: str
) -> None:
    assert environment(of_the_server)[KERNELS] == of_a_worker


async def test_rejects_invalid_task_before_reading_reports(pool: WorkerPool) -> None:
    def pieces() -> Iterator[bytes]:
        pytest.fail("reports were read")
        yield b""

    pid = await only_worker(pool)
    with pytest.raises(ParameterError, match="needs the attacked items"):
        await pool.run(lambda: (recovery("detection"), pieces()))
    assert pids_of(pool) == {pid}
    await pool.run(alarms())


async def test_killed_worker_fails_its_analysis_alone(pool: WorkerPool) -> None:
    pid = await only_worker(pool)
    analysis = await begin(pool.run)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(AnalysisFailedError):
        await analysis
    await pool.run(alarms())
    assert len(pids_of(pool)) == 1
    assert pid not in pids_of(pool)


async def test_dead_idle_worker_is_replaced(pool: WorkerPool) -> None:
    pid = await only_worker(pool)
    os.kill(pid, signal.SIGKILL)
    psutil.Process(pid).wait()
    await pool.run(alarms())
    assert await only_worker(pool) != pid


async def test_timeout_kills_the_worker() -> None:
    async with running_pool(count=1, seconds=1) as pool:
        pid = await only_worker(pool)
        with pytest.raises(AnalysisTimeoutError, match="within 1 seconds"):
            await pool.run(endless())
        await pool.run(alarms(), keyed=True)
        assert not psutil.pid_exists(pid)


async def test_cancellation_kills_the_worker(pool: WorkerPool) -> None:
    pid = await only_worker(pool)
    analysis = await begin(pool.run)
    analysis.cancel()
    with pytest.raises(asyncio.CancelledError):
        await analysis
    await pool.run(alarms())
    assert not psutil.pid_exists(pid)
    assert len(pids_of(pool)) == 1


async def test_memory_limit_is_an_error_with_its_bytes() -> None:
    """A wide tally of many reports: the support matrices of one block are beyond one megabyte."""

    async with running_pool(count=1, memory_bytes=1 << 20) as pool:
        with pytest.raises(AnalysisTooLargeError, match="more than 1 MiB of memory"):
            await pool.run(endless())


class ExplodingTask(Task):
    """A task that takes more memory than any machine has, once its pickle is loaded."""

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return bytearray, (1 << 60,)


async def test_memory_limit_holds_while_the_task_is_loaded(pool: WorkerPool) -> None:
    with pytest.raises(AnalysisTooLargeError, match="MiB of memory"):
        await pool.run(lambda: (ExplodingTask(partial(tasks.alarms), ORACLE, TALLY), None))
    await pool.run(alarms())


async def test_memory_limit_holds_while_reports_are_received() -> None:
    async with running_pool(count=1, memory_bytes=1 << 20) as pool:
        with pytest.raises(AnalysisTooLargeError, match="more than 1 MiB of memory"):
            await pool.run(lambda: (alarms_task(), 100 * [bytes(1 << 20)]))


async def test_memory_limit_of_one_task_does_not_hold_for_the_next() -> None:
    """Its message alone is larger than the limit of the first."""
    wide = frequency_oracle("grr", 1.0, 100_000)
    tally = Tally.of(wide, np.arange(100_000, dtype=np.uint32))
    earlier = tuple((wide, Tally(tally.summary + i, tally.n)) for i in range(20))
    large = recovery("norm-sub", wide, tally, reads=False, history=earlier)
    async with running_pool(count=1, anonymous_bytes=1 << 22) as pool:
        await pool.run(lambda: (alarms_task(reads=False), None))
        await pool.run(lambda: (large, None), keyed=True)
        with pytest.raises(AnalysisTooLargeError, match="more than 4 MiB of memory"):
            await pool.run(lambda: (large, None))


async def test_disk_limit_is_an_error_and_reports_are_read_to_the_end() -> None:
    async with running_pool(count=1, disk_bytes=10_000) as pool:
        for _ in range(2):
            with pytest.raises(AnalysisTooLargeError, match="LDPRECOVER_ANALYSIS_DISK_BYTES"):
                await pool.run(alarms())


async def test_full_disk_is_an_error_of_the_analysis(pool: WorkerPool) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(AnalysisTooLargeError, match="do not fit into a temporary file"):
            await pool.run(alarms())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await pool.run(alarms())


async def test_deleted_reports_end_only_their_analysis(pool: WorkerPool) -> None:
    def pieces() -> Iterator[bytes]:
        yield REPORTS[:10].tobytes()
        raise ReportsGoneError("deleted meanwhile")

    with pytest.raises(ReportsGoneError):
        await pool.run(lambda: (alarms_task(), pieces()))
    await pool.run(alarms())


async def test_worker_error_is_logged_and_hidden_from_the_caller(
    pool: WorkerPool, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AnalysisFailedError, match="the server's log says why"):
        await pool.run(lambda: (recovery("diffstats"), [b"\xff" * 7]))  # no whole number of reports
    await pool.run(alarms())
    assert "ValueError" in caplog.text


async def test_print_does_not_corrupt_the_messages(capfd: pytest.CaptureFixture[str]) -> None:
    text = 100_000 * "x"
    async with running_pool(count=1) as pool:
        task = Task(partial(print, text), ORACLE, TALLY)
        for _ in range(2):
            assert unpack(type(None), await pool.run(lambda: (task, None))) is None
    assert text in capfd.readouterr().err


async def test_worker_environment_contains_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LDPRECOVER_ADMIN_KEY", "LDPRECOVER_DATABASE_URL", "PGPASSWORD"):
        monkeypatch.setenv(name, "a-key-that-nobody-may-see")
    async with running_pool() as pool:
        await pool.run(alarms())  # it has begun for good
        for pid in pids_of(pool):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            assert b"nobody-may-see" not in environment
            assert b"LDPRECOVER_DATABASE_URL" not in environment
            files = {file.path for file in psutil.Process(pid).open_files()}
            assert not [path for path in files if path.endswith(".db")]


async def test_worker_leaves_no_core_dump() -> None:
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    if not limits[1]:
        pytest.skip("this system allows no core dumps, which a worker could forbid")
    resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
    try:
        async with running_pool(count=1) as pool:
            pid = await only_worker(pool)
            assert psutil.Process(pid).rlimit(psutil.RLIMIT_CORE) == (0, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)


async def test_worker_is_nice_and_imports_no_server_libraries(pool: WorkerPool) -> None:
    pid = await only_worker(pool)
    assert psutil.Process(pid).nice() >= 10
    mapped = Path(f"/proc/{pid}/maps").read_text()
    for module in ("pydantic_core", "sqlalchemy", "_sqlite3", "_ssl", "llvmlite"):
        assert module not in mapped


async def test_huge_round_passes_through_little_memory() -> None:
    """Of 200 MB the server holds a few pieces, and the worker, whose file it is, as much as it
    may.
    """
    piece = REPORTS.tobytes()
    times = 200_000_000 // len(piece)
    tally = Tally(TALLY.summary * times, TALLY.n * times)

    def pieces() -> Iterator[bytes]:
        for _ in range(times):
            yield bytearray(piece)  # type: ignore[misc]  # a new object each time

    async with running_pool(count=1, memory_bytes=1 << 26) as pool:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = unpack(AlarmsResult, await pool.run(lambda: (alarms_task(tally), pieces())))
        assert result.n == tally.n
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10  # KiB


async def test_anonymous_analysis_gives_way_to_those_that_wait() -> None:
    """It has the sixth part of its time then, and all of it before."""
    async with running_pool(count=1, seconds=3) as pool:
        first = await begin(pool.run)
        other = asyncio.create_task(pool.run(alarms(), keyed=True))
        with pytest.raises(AnalysisTimeoutError, match=r"0\.5 seconds, .* while others wait"):
            await first
        await other


async def test_stop_fails_running_and_waiting_analyses() -> None:
    async with running_pool(count=1) as pool:
        first = await begin(pool.run)
        second = asyncio.create_task(pool.run(alarms()))
        await asyncio.sleep(0)
        await pool.stop()
        for task in (first, second):
            with pytest.raises(AnalysesBusyError, match="the server stops"):
                await task
        assert pids_of(pool) == set()


async def test_reports_of_every_protocol_reach_the_worker(pool: WorkerPool) -> None:
    rng = np.random.default_rng(5)
    for protocol in PROTOCOLS:
        oracle = frequency_oracle(protocol, 1.0, 11)
        reports = oracle.perturb(rng.integers(11, size=2_000), rng)
        tally = Tally.of(oracle, reports)
        task = recovery("detection", oracle=oracle, tally=tally, targets=(3,))
        answer = await pool.run(partial(with_pieces, task, reports.tobytes()))
        expected = recover(oracle, reports, RecoveryRequest("detection", targets=[3]))
        recovered = unpack(Recovery, answer).recovered
        assert recovered.tolist() == expected.recovered.tolist(), protocol


async def test_own_task_gives_way_to_a_caller(pool: WorkerPool) -> None:
    own = await begin(pool.run_own)
    assert await pool.run(alarms())
    with pytest.raises(AnalysesBusyError, match="a caller needs the worker"):
        await own


async def test_cancelled_own_task_frees_its_worker(pool: WorkerPool) -> None:
    own = await begin(pool.run_own)
    own.cancel()
    with pytest.raises(asyncio.CancelledError):
        await own
    assert await pool.run(alarms(), keyed=True)

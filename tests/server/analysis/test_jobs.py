"""Jobs: started in one process, read and cancelled from any, and expired."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.conftest import NewDatabase

from ldprecover import ParameterError, RoundParameters
from ldprecover.errors import ContractError
from ldprecover_interface.problems import Problem
from ldprecover_server.analysis.admission import NO_ROOM
from ldprecover_server.analysis.jobs import Job, Jobs, JobWork
from ldprecover_server.analysis.worker_pool import OnProgress
from ldprecover_server.errors import (
    AnalysesBusyError,
    AnalysisFailedError,
    AnalysisTimeoutError,
    BusyError,
    InvalidParameterError,
    JobNotFoundError,
    RoundNotFoundError,
    ServiceError,
    ShareTooSmallError,
)
from ldprecover_server.storage import Storage
from ldprecover_server.storage.jobs import DEAD_SECONDS, MAX_AGE_SECONDS, MAX_JOBS

pytestmark = pytest.mark.anyio

PARAMETERS = RoundParameters("grr", 1.0, ("a", "b"))
BEAT = 0.01


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def storages(
    new_database: NewDatabase, tmp_path: Path, clock: Clock
) -> Iterator[tuple[Storage, Storage]]:
    """Two storages over one database with a round of seq 1, as two processes have them."""
    with new_database(tmp_path) as url, ExitStack() as stack:
        one, other = (stack.enter_context(closing(Storage(url, clock=clock))) for _ in range(2))
        one.prepare()
        assert one.rounds.open("R1", "first", PARAMETERS).seq == 1
        yield one, other


class Work:
    """Work that is half done until a signal."""

    def __init__(self, result: bytes = b"result") -> None:
        self.result = result
        self.begun = asyncio.Event()
        self.finish = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, report_progress: OnProgress) -> Callable[[], bytes]:
        report_progress(0.5)
        self.begun.set()
        try:
            await self.finish.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return lambda: self.result


def failing(error: Exception) -> JobWork:
    async def work(report_progress: OnProgress) -> Callable[[], bytes]:
        raise error

    return work


async def state(jobs: Jobs, id: str, expected: str) -> None:
    """Wait until a job is in a state: written by another, it can be seen only by looking."""
    while (await jobs.status(1, id)).state != expected:
        await asyncio.sleep(BEAT)


def json_of(problem: Problem) -> Any:
    """Return a problem as callers receive it, without the fields that do not apply."""
    return json.loads(problem.to_json())


async def problem(jobs: Jobs, id: str) -> Any:
    """Return the problem of a failed job as JSON."""
    status = await jobs.status(1, id)
    assert status.problem is not None
    return json_of(status.problem)


@contextlib.asynccontextmanager
async def two_processes(
    storages: tuple[Storage, Storage], waiting: int = 8
) -> AsyncIterator[tuple[Jobs, Jobs]]:
    """The jobs of two processes, which stop at the end."""
    local, remote = (Jobs(storage, waiting=waiting, beat_seconds=BEAT) for storage in storages)
    try:
        yield local, remote
    finally:
        await local.stop()
        await remote.stop()


async def test_each_process_sees_all_jobs(storages: tuple[Storage, Storage]) -> None:
    async with two_processes(storages) as (local, remote):
        work = Work(b'{"lower": []}')
        job = await local.start(1, "certificate", work, keyed=False)
        assert (job.state, job.progress, job.result) == ("queued", 0.0, None)
        await work.begun.wait()
        assert (await local.status(1, job.id)).state == "running"
        await state(remote, job.id, "running")
        assert (await remote.status(1, job.id)).progress == 0.5
        work.finish.set()
        for jobs in (local, remote):
            await state(jobs, job.id, "done")
            status = await jobs.status(1, job.id)
            assert (status.analysis, status.progress, status.result, status.problem) == (
                "certificate",
                1.0,
                b'{"lower": []}',
                None,
            )


@pytest.mark.parametrize("by", [0, 1], ids=["its own process", "another process"])
async def test_a_job_is_cancelled_from_any_process(
    storages: tuple[Storage, Storage], by: int
) -> None:
    async with two_processes(storages) as (local, remote):
        both = [local, remote]
        work = Work()
        job = await both[0].start(1, "recovery", work, keyed=True)
        await work.begun.wait()
        await both[by].cancel(1, job.id)
        await work.cancelled.wait()
        for jobs in both:
            assert (await jobs.status(1, job.id)).state == "cancelled"
        await both[by].cancel(1, job.id)
        while both[0]._local:
            await asyncio.sleep(BEAT)
        assert (await both[1].status(1, job.id)).state == "cancelled"


@pytest.mark.parametrize(
    ("error", "expected_error"),
    [
        (ParameterError("eta is odd"), InvalidParameterError("eta is odd")),
        (AnalysisTimeoutError("too long"), AnalysisTimeoutError("too long")),
        (ShareTooSmallError("more", 0.25), ShareTooSmallError("more", 0.25)),
        (ContractError("it returned text"), AnalysisFailedError("it returned text")),
        (KeyError("secret"), AnalysisFailedError("the server's log says why")),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_failed_job_has_the_problem_of_its_work(
    storages: tuple[Storage, Storage], error: Exception, expected_error: ServiceError
) -> None:
    async with two_processes(storages) as (local, remote):
        job = await local.start(1, "recovery", failing(error), keyed=False)
        await state(remote, job.id, "failed")
        assert await problem(remote, job.id) == json_of(expected_error.problem)


async def test_results_are_written_one_at_a_time(storages: tuple[Storage, Storage]) -> None:
    """So that those of many jobs, megabytes each, are not in memory together."""
    writing, highest = 0, 0

    def write() -> bytes:
        nonlocal writing, highest
        writing += 1
        highest = max(highest, writing)
        time.sleep(BEAT)  # another thread could begin meanwhile
        writing -= 1
        return b"result"

    async def work(report_progress: OnProgress) -> Callable[[], bytes]:
        return write

    async with two_processes(storages) as (local, _remote):
        jobs = [await local.start(1, "recovery", work, keyed=True) for _ in range(8)]
        for job in jobs:
            await state(local, job.id, "done")
    assert highest == 1


async def test_failed_writing_fails_the_job(storages: tuple[Storage, Storage]) -> None:
    def write() -> bytes:
        raise RoundNotFoundError("it is deleted")

    async def work(report_progress: OnProgress) -> Callable[[], bytes]:
        return write

    async with two_processes(storages) as (local, remote):
        job = await local.start(1, "recovery", work, keyed=False)
        await state(remote, job.id, "failed")
        expected_error = RoundNotFoundError("it is deleted")
        assert await problem(remote, job.id) == json_of(expected_error.problem)


async def test_a_job_whose_process_died_has_failed(
    storages: tuple[Storage, Storage], clock: Clock
) -> None:
    async with two_processes(storages) as (_local, remote):
        storages[0].jobs.add("a" * 32, 1, "recovery", keyed=False)
        clock.pass_by(DEAD_SECONDS)
        assert (await remote.status(1, "a" * 32)).state == "queued"
        clock.pass_by(1)
        assert (await remote.status(1, "a" * 32)).state == "failed"
        expected_error = AnalysisFailedError("its server process has ended")
        assert await problem(remote, "a" * 32) == json_of(expected_error.problem)


async def test_heartbeat_continues_after_unexpected_error(
    storages: tuple[Storage, Storage], caplog: pytest.LogCaptureFixture
) -> None:
    """As long as no two jobs may be as far, a beat is an IntegrityError, which no refusal stands
    for.
    """
    there_alone = "a" * 32
    storages[1].jobs.add(there_alone, 1, "recovery", keyed=False)
    assert not storages[1].jobs.heartbeat({there_alone: ("running", 0.5)})

    def change(schema: str) -> None:
        with storages[1].database.write() as connection:
            connection.execute(sa.text(schema))

    async with two_processes(storages) as (local, remote):
        change("CREATE UNIQUE INDEX fault ON jobs (progress)")
        work = Work()
        job = await local.start(1, "recovery", work, keyed=False)
        async with asyncio.timeout(30):
            while "IntegrityError" not in caplog.text:
                await asyncio.sleep(BEAT)
            change("DROP INDEX fault")
            await remote.cancel(1, job.id)
            await work.cancelled.wait()


async def test_a_fault_at_the_end_of_a_job_is_logged(
    storages: tuple[Storage, Storage], caplog: pytest.LogCaptureFixture
) -> None:
    """It reads as failed ten seconds later, as if its process had died."""
    storages[1].jobs.add("a" * 32, 1, "recovery", keyed=False)
    storages[1].jobs.finish("a" * 32, "done", result=b"")

    async with two_processes(storages) as (local, _remote):
        with storages[1].database.write() as connection:
            connection.execute(sa.text("CREATE UNIQUE INDEX fault ON jobs (progress)"))
        work = Work()
        await local.start(1, "recovery", work, keyed=False)
        work.finish.set()
        while local._local:
            await asyncio.sleep(BEAT)
        assert "the end of a job could not be written" in caplog.text
        assert "IntegrityError" in caplog.text


async def test_stopping_server_fails_its_jobs(storages: tuple[Storage, Storage]) -> None:
    async with two_processes(storages) as (local, remote):
        work = Work()
        job = await local.start(1, "recovery", work, keyed=False)
        await work.begun.wait()
        await local.stop()
        assert work.cancelled.is_set()
        assert (await remote.status(1, job.id)).state == "failed"
        expected_error = AnalysisFailedError("the server stopped meanwhile")
        assert await problem(remote, job.id) == json_of(expected_error.problem)
        with pytest.raises(AnalysesBusyError):
            await local.start(1, "recovery", work, keyed=True)


async def test_deleting_a_round_cancels_its_jobs(storages: tuple[Storage, Storage]) -> None:
    async with two_processes(storages) as (local, _remote):
        work = Work()
        job = await local.start(1, "recovery", work, keyed=False)
        await work.begun.wait()
        storages[1].deletion.delete("first")
        await work.cancelled.wait()
        with pytest.raises(JobNotFoundError):
            await local.status(1, job.id)
        with pytest.raises(RoundNotFoundError):
            await local.start(1, "recovery", work, keyed=False)


def test_rejects_job_for_round_being_deleted(
    storages: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are still there: a round of many submissions goes in pieces."""
    monkeypatch.setattr("ldprecover_server.storage.maintenance.deletion._CALL_SECONDS", -1.0)
    storages[0].deletion.delete("first")
    with pytest.raises(RoundNotFoundError):
        storages[1].jobs.add("a" * 32, 1, "recovery", keyed=True)


async def test_anonymous_callers_have_half_of_the_jobs(storages: tuple[Storage, Storage]) -> None:
    async with two_processes(storages, waiting=4) as (local, _remote):
        work = Work()
        anonymous = [await local.start(1, "recovery", work, keyed=False) for _ in range(2)]
        await work.begun.wait()
        for _ in range(2):
            await local.start(1, "recovery", work, keyed=True)
        with pytest.raises(AnalysesBusyError):
            await local.start(1, "recovery", work, keyed=True)
        for job in anonymous:
            assert (await local.status(1, job.id)).state != "failed"


async def test_oldest_anonymous_job_of_the_largest_round_makes_room(
    storages: tuple[Storage, Storage],
) -> None:
    storages[0].rounds.open("R2", "second", PARAMETERS)
    async with two_processes(storages, waiting=6) as (local, _remote):
        rounds, ids = (2, 1, 1, 1), []
        for round in rounds:
            work = Work()
            ids.append((await local.start(round, "recovery", work, keyed=False)).id)
            await work.begun.wait()
        await state(local, ids[1], "failed")
        assert await problem(local, ids[1]) == json_of(AnalysesBusyError(NO_ROOM).problem)
        states = [
            (await local.status(round, id)).state for round, id in zip(rounds, ids, strict=True)
        ]
        assert states == ["running", "failed", "running", "running"]


async def test_rejects_status_calls_beyond_the_limit(storages: tuple[Storage, Storage]) -> None:
    async with two_processes(storages, waiting=4) as (local, _remote):
        job = await local.start(1, "recovery", Work(), keyed=False)
        replies = await asyncio.gather(
            *(local.status(1, job.id) for _ in range(20)), return_exceptions=True
        )
        assert [type(each) for each in replies] == 5 * [Job] + 15 * [BusyError]


UNKNOWN: dict[str, Callable[[str], tuple[int, str]]] = {
    "of another round": lambda id: (2, id),
    "that never was": lambda id: (1, "b" * 32),
    "whose id no database takes": lambda id: (1, "\0"),
}


@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_job_of_another_round_is_not_found(
    storages: tuple[Storage, Storage], unknown: Callable[[str], tuple[int, str]]
) -> None:
    storage = storages[0]
    storage.rounds.open("R2", "second", PARAMETERS)
    storage.jobs.add("a" * 32, 1, "recovery", keyed=False)
    for ask in (storage.jobs.find, storage.jobs.cancel):
        with pytest.raises(JobNotFoundError):
            ask(*unknown("a" * 32))


def test_ended_jobs_expire_after_an_hour(storages: tuple[Storage, Storage], clock: Clock) -> None:
    rows = storages[0].jobs
    for name in ("done", "alive", "dead"):
        rows.add(name, 1, "recovery", keyed=False)
    rows.finish("done", "done", result=b"")
    clock.pass_by(MAX_AGE_SECONDS)
    assert rows.heartbeat({"alive": ("running", 0.5)}) == set()
    assert rows.expire() == 0
    clock.pass_by(1)
    assert rows.expire() == 2
    assert rows.find(1, "alive").state == "running"
    for name in ("done", "dead"):
        with pytest.raises(JobNotFoundError):
            rows.find(1, name)
    assert rows.heartbeat({"dead": ("running", 0.5), "alive": ("running", 0.6)}) == {"dead"}


def test_new_job_replaces_oldest_ended_anonymous_job_first(
    storages: tuple[Storage, Storage], clock: Clock
) -> None:
    rows = storages[0].jobs
    for i in range(MAX_JOBS):
        rows.add(f"job {i}", 1, "recovery", keyed=i < MAX_JOBS - 2)
        if i % 2:
            rows.finish(f"job {i}", "done", result=b"")
        clock.pass_by(0.05)
    # Of those without a key, 98 is under way and 99 done.
    rows.add("anonymous", 1, "recovery", keyed=False)
    with pytest.raises(JobNotFoundError):
        rows.find(1, f"job {MAX_JOBS - 1}")
    with pytest.raises(AnalysesBusyError):
        rows.add("another", 1, "recovery", keyed=False)
    rows.add("keyed", 1, "recovery", keyed=True)
    with pytest.raises(JobNotFoundError):
        rows.find(1, "job 1")
    assert rows.find(1, "job 3").state == "done"


def test_oldest_results_beyond_the_limit_expire(
    storages: tuple[Storage, Storage], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, limit = storages[0].jobs, 1 << 16
    monkeypatch.setattr("ldprecover_server.storage.jobs.MAX_RESULT_BYTES", limit)
    for name in ("a", "b", "c"):
        rows.add(name, 1, "recovery", keyed=False)
        rows.finish(name, "done", result=bytes(limit // 2))
        clock.pass_by(1)
    with pytest.raises(JobNotFoundError):
        rows.find(1, "a")
    assert rows.find(1, "b").result == rows.find(1, "c").result == bytes(limit // 2)


def test_second_end_of_a_job_changes_nothing(storages: tuple[Storage, Storage]) -> None:
    rows = storages[0].jobs
    rows.add("a", 1, "recovery", keyed=False)
    rows.cancel(1, "a")
    rows.finish("a", "done", result=b"late")
    assert (rows.find(1, "a").state, rows.find(1, "a").result) == ("cancelled", None)

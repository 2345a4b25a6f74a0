"""Jobs change beside one another and beside their rounds, and no transactions deadlock on
Postgres.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import pytest
import sqlalchemy as sa
from tests.server.storage.conftest import open_round

from ldprecover_server.errors import RoundNotFoundError
from ldprecover_server.storage import Storage
from ldprecover_server.storage import jobs as stored_jobs
from ldprecover_server.storage.schema import jobs

pytestmark = pytest.mark.postgres

KEPT = 6
MANY = 50
TIMES = 25  # without the order a deadlock came within 6


@pytest.fixture
def both(fresh: str) -> Iterator[tuple[Storage, Storage]]:
    """Two storages over one database, as two processes have them."""
    with ExitStack() as stack:
        one, other = (stack.enter_context(closing(Storage(fresh))) for _ in range(2))
        one.prepare()
        yield one, other


def beside_one_another(prepare: Callable[[int], None], *acts: Callable[[int], object]) -> None:
    """Prepare, then do all acts at one time, many times over; raise what one raises.

    A deadlock is raised as StoreUnavailableError, in one of those who wait.
    """
    times = itertools.count()
    together = threading.Barrier(len(acts), action=lambda: prepare(next(times)), timeout=60)

    def go_on(act: Callable[[int], object]) -> None:
        try:
            for i in range(TIMES):
                together.wait()
                act(i)
        except BaseException:
            together.abort()  # the other fails as well
            raise

    with ThreadPoolExecutor(len(acts)) as pool:
        ended = [pool.submit(go_on, act) for act in acts]
    faults = [error for each in ended if (error := each.exception()) is not None]
    for error in sorted(faults, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error


def test_a_job_may_begin_as_its_round_is_deleted(
    both: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both lock the round and one of its jobs, which the new job replaces."""
    monkeypatch.setattr(stored_jobs, "MAX_JOBS", KEPT)
    one_storage, other_storage = both
    seqs = [open_round(one_storage) for _ in range(TIMES)]
    ids = [round.id for round in reversed(one_storage.rounds.page(TIMES))]

    def fill(i: int) -> None:
        for k in range(KEPT):
            one_storage.jobs.add(f"{i} {k}", seqs[i], "recovery", keyed=True)
            one_storage.jobs.finish(f"{i} {k}", "done", result=b"")

    def begin(i: int) -> None:
        with suppress(RoundNotFoundError):
            one_storage.jobs.add(f"{i} last", seqs[i], "recovery", keyed=True)

    beside_one_another(fill, begin, lambda i: other_storage.deletion.delete(ids[i]))


@pytest.mark.parametrize(
    ("one", "other"), [("beat", "expire"), ("beat", "add"), ("end", "expire"), ("end", "add")]
)
def test_jobs_are_locked_in_one_order(
    both: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch, one: str, other: str
) -> None:
    """The table has the jobs by descending id, and each counts as old and dead."""
    for name, value in {
        "MAX_JOBS": KEPT,
        "MAX_RESULT_BYTES": 1,
        "MAX_AGE_SECONDS": -1,
        "DEAD_SECONDS": -1,
    }.items():
        monkeypatch.setattr(stored_jobs, name, value)
    one_storage, other_storage = both
    seq = open_round(one_storage)
    names = [f"job {k:02}" for k in range(MANY)]
    blank = {"round": seq, "analysis": "recovery", "keyed": False}
    blank |= {"progress": 0.0, "created": 0, "heartbeat": 0}
    going, done = {"state": "running", "result": None}, {"state": "done", "result": b"1"}
    rows = [
        {"id": name, **blank, **(going if one == "beat" or name == names[0] else done)}
        for name in names
    ]
    acts: dict[str, Callable[[Storage], object]] = {
        "beat": lambda storage: storage.jobs.heartbeat(
            dict.fromkeys(names[::-1], ("running", 0.5))
        ),
        "end": lambda storage: storage.jobs.finish(names[0], "done", result=b"12"),
        "expire": lambda storage: storage.jobs.expire(),
        "add": lambda storage: storage.jobs.add("new", seq, "recovery", keyed=True),
    }

    def fill(i: int) -> None:
        with one_storage.database.write() as connection:
            connection.execute(sa.delete(jobs))
            connection.execute(sa.insert(jobs), rows[::-1])

    beside_one_another(fill, lambda i: acts[one](one_storage), lambda i: acts[other](other_storage))

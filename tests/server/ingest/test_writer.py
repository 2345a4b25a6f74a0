"""Group commit: answers after the commit, limits of queue and group, and faults."""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from tests.conftest import PACKED
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover import GRR, frequency_oracle
from ldprecover.protocols import wire
from ldprecover.types import Reports
from ldprecover_server import limits
from ldprecover_server.errors import StorageFullError, StoreUnavailableError
from ldprecover_server.ingest.batches import Submission
from ldprecover_server.storage.schema import submission_keys

Post = tuple[str, str, dict[str, Any]]


def post(id: str, reports: Sequence[int] | Reports, key: str | None = None) -> Post:
    """Return the request that submits reports; numbers are items of GRR."""
    headers = PACKED | InProcess.admin | ({"Idempotency-Key": key} if key is not None else {})
    packed = wire.pack(reports if isinstance(reports, np.ndarray) else np.array(reports, "<u4"))
    return "POST", f"/rounds/{id}/reports", {"content": packed, "headers": headers}


async def send(app: InProcess, request: Post) -> httpx.Response:
    method, path, options = request
    return await app.http.request(method, path, **options)


def counts(app: InProcess, id: str) -> Any:
    return app.frequencies(id)["counts"]


class Commits:
    """Wraps the commit of a storage: records the sizes of groups, and can hold a commit, let it
    fail, or lose its outcome.
    """

    def __init__(self, app: InProcess) -> None:
        self.sizes: list[int] = []
        self.before: list[BaseException | threading.Event | Callable[[], None]] = []
        self.after: list[BaseException] = []
        self.first = threading.Event()
        self._commit = app.storage.commit
        app.storage.commit = self  # type: ignore[assignment]

    def __call__(self, batches: Any) -> Any:
        self.sizes.append(sum(len(batch.hashes) for batch in batches))
        self.first.set()
        if self.before:
            step = self.before.pop(0)
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, threading.Event):
                assert step.wait(30)
            else:
                step()
        outcomes = self._commit(batches)
        if self.after:
            raise self.after.pop(0)
        return outcomes


@pytest.fixture
def app(start_in_process: StartInProcess) -> InProcess:
    return start_in_process()


@pytest.fixture
def id(app: InProcess) -> str:
    return app.open_round("grr", domain_size=50)


@pytest.fixture
def commits(app: InProcess, id: str) -> Commits:
    return Commits(app)


def in_one_group(app: InProcess, commits: Commits, *requests: Post) -> list[httpx.Response]:
    """Send requests while the commit of another round's report is held, until all of them wait for
    the next one.
    """
    elsewhere = app.open_round()
    gate = threading.Event()
    commits.first.clear()
    commits.before.insert(0, gate)

    async def arrive() -> list[httpx.Response]:
        before = asyncio.create_task(send(app, post(elsewhere, [0])))
        await asyncio.to_thread(commits.first.wait, 30)
        together = [asyncio.create_task(send(app, request)) for request in requests]
        while app.ingest.waiting < 1 + len(together):
            await asyncio.sleep(0.001)
        gate.set()
        await before
        return [await each for each in together]

    return app.run(arrive())


def test_responds_only_after_the_commit(app: InProcess, id: str, commits: Commits) -> None:
    gate = threading.Event()
    commits.before = [gate]

    async def watch() -> httpx.Response:
        submitted = asyncio.create_task(send(app, post(id, [1])))
        await asyncio.to_thread(commits.first.wait, 30)
        frequencies = await app.http.get(f"/rounds/{id}/frequencies")
        assert frequencies.json()["n"] == 0
        assert not submitted.done()
        gate.set()
        return await submitted

    assert app.run(watch()).status_code == 202
    assert counts(app, id)[1] == 1


def test_unknown_outcome_is_retried_and_counts_once(
    app: InProcess, id: str, commits: Commits
) -> None:
    commits.after = [StoreUnavailableError("the connection broke after COMMIT was sent")]
    answers = app.gather(post(id, [1, 2], "a"), post(id, [3], "b"))
    assert [(r.status_code, r.json()["accepted"]) for r in answers] == [(202, 2), (202, 1)]
    assert len(commits.sizes) >= 2
    assert counts(app, id)[:4] == [0, 1, 1, 1]
    assert app.get(f"/rounds/{id}").json()["n"] == 3


@pytest.mark.sqlite
def test_unavailable_storage_is_503_and_the_retry_counts_once(
    start_in_process: StartInProcess,
) -> None:
    """It stored the reports, which the user cannot know, so they are sent again."""
    app = start_in_process(request_seconds=1)
    id = app.open_round("grr", domain_size=50)
    commits = Commits(app)
    commits.after = [StoreUnavailableError("no answer") for _ in range(10)]
    (response,) = app.gather(post(id, [1], "a"))
    assert problem_of(response) == "store-unavailable"
    assert "retry-after" in response.headers
    commits.after = []
    (again,) = app.gather(post(id, [1], "a"))
    assert again.json() == {"round": id, "accepted": 1, "duplicate": True}
    assert counts(app, id)[1] == 1


@pytest.mark.sqlite
def test_full_storage_is_507_without_retry(app: InProcess, id: str, commits: Commits) -> None:
    commits.before = [StorageFullError("the disk is full")]
    answers = in_one_group(app, commits, post(id, [1], "a"), post(id, [2], "b"))
    assert {problem_of(r) for r in answers} == {"storage-full"}
    assert commits.sizes == [1, 2]
    assert counts(app, id) == 50 * [0]
    assert [
        r.json()["duplicate"] for r in app.gather(post(id, [1], "a"), post(id, [2], "b"))
    ] == 2 * [False]


def test_closed_or_deleted_round_does_not_affect_its_group(
    app: InProcess, id: str, commits: Commits
) -> None:
    """The server has both in its cache; the commit finds that they ended."""
    closed, deleted = (app.open_round("grr", domain_size=50) for _ in range(2))
    app.gather(post(closed, [1]), post(deleted, [1]))

    def end() -> None:
        app.storage.rounds.close(closed)
        app.storage.deletion.delete(deleted)

    commits.before = [end]
    answers = in_one_group(
        app, commits, post(closed, [2]), post(id, [3]), post(deleted, [4]), post(id, [5])
    )
    assert commits.sizes[-1] == 4
    assert [r.status_code for r in answers] == [409, 202, 404, 202]
    assert [problem_of(answers[i]) for i in (0, 2)] == ["round-closed", "round-not-found"]
    assert (counts(app, id)[3], counts(app, id)[5], counts(app, closed)[2]) == (1, 1, 0)
    # The deleted round is no longer in the cache.
    assert problem_of(app.gather(post(deleted, [4]))[0]) == "round-not-found"


@pytest.mark.sqlite
def test_full_queue_rejects_the_next_and_loses_nothing(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "QUEUE_REQUESTS", 5)
    app = start_in_process()
    id = app.open_round("grr", domain_size=50)
    commits = Commits(app)
    gate = threading.Event()
    commits.before = [gate]

    async def send_all() -> list[httpx.Response]:
        sent = [asyncio.create_task(send(app, post(id, [i], f"key-{i}"))) for i in range(20)]
        while sum(each.done() for each in sent) < 15:
            await asyncio.wait(
                [each for each in sent if not each.done()], return_when=asyncio.FIRST_COMPLETED
            )
        gate.set()
        return [await each for each in sent]

    answers = app.run(send_all())
    refused = [i for i, r in enumerate(answers) if r.status_code == 503]
    assert {problem_of(answers[i]) for i in refused} == {"busy"}
    assert all(int(answers[i].headers["retry-after"]) >= 1 for i in refused)
    assert len(refused) == 15
    assert sum(counts(app, id)) == 5
    for i in refused:
        (again,) = app.gather(post(id, [i], f"key-{i}"))
        assert again.json()["duplicate"] is False
    assert counts(app, id) == 20 * [1] + 30 * [0]


@pytest.mark.sqlite
def test_group_has_limited_bytes(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each submission has half of a group's bytes, so groups have two."""
    monkeypatch.setattr(limits, "GROUP_BYTES", 1024)
    app = start_in_process()
    id = app.open_round("grr", domain_size=50)
    commits = Commits(app)
    answers = in_one_group(app, commits, *(post(id, 128 * [i]) for i in range(12)))
    assert [r.status_code for r in answers] == 12 * [202]
    assert commits.sizes == [1, *(6 * [2])]
    assert counts(app, id) == 12 * [128] + 38 * [0]


@pytest.mark.sqlite
def test_group_has_limited_items_to_hash(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each submission has half of a group's reports times items, so groups have two."""
    monkeypatch.setattr(limits, "SUBMISSION_CELLS", 2 * 10 * 50)
    app = start_in_process()
    id = app.open_round("olh", domain_size=50)
    commits = Commits(app)
    body = {"seeds": list(range(10)), "buckets": 10 * [0]}
    path = f"/rounds/{id}/reports"
    request: Post = ("POST", path, {"json": body, "headers": app.admin})
    answers = in_one_group(app, commits, *(12 * [request]))
    assert [r.status_code for r in answers] == 12 * [202]
    assert commits.sizes == [1, *(6 * [2])]
    assert app.get(f"/rounds/{id}").json()["n"] == 120


@pytest.mark.sqlite
def test_rounds_take_turns_within_limited_bytes_of_tallies(
    app: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group has room for two large tallies and the small one, however submissions alternate."""
    monkeypatch.setattr("ldprecover_server.ingest.writer.GROUP_TALLY_BYTES", 2 * 8 * 50 + 8 * 4)
    ids = [app.open_round("grr", domain_size=50) for _ in range(6)]
    small = app.open_round("grr", domain_size=4)
    commits = Commits(app)
    answers = in_one_group(app, commits, *(post(id, [0]) for id in [*(3 * ids), small]))
    assert [r.status_code for r in answers] == 19 * [202]
    assert commits.sizes == [1, 7, 6, 6]
    assert [counts(app, id)[0] for id in ids] == 6 * [3]


LONG = frequency_oracle("olh", 0.5, 100)
MANY = 30_000  # reports that take long to count


def long(id: str, seed: int, n: int = MANY, key: str | None = None) -> tuple[Post, Reports]:
    """Return the request that submits OLH reports, and the reports."""
    rng = np.random.default_rng(seed)
    reports = LONG.perturb(rng.integers(0, 100, n), rng)
    return post(id, reports, key), reports


def hold_counting(
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[threading.Event, threading.Event, list[Submission]]:
    """Return the events that counting ahead has begun and may go on, and what was counted."""
    began, gate, count = threading.Event(), threading.Event(), Submission.count
    counted: list[Submission] = []

    def count_after_gate(submission: Submission) -> None:
        counted.append(submission)
        began.set()
        assert gate.wait(30)
        count(submission)

    monkeypatch.setattr(Submission, "count", count_after_gate)
    return began, gate, counted


def test_large_submission_counts_once_despite_retries(app: InProcess) -> None:
    id = app.open_round("olh", 0.5, domain_size=100)
    request, reports = long(id, 1, key="long")
    other, more = long(id, 2)
    app.gather(request)
    answers = in_one_group(app, Commits(app), request, other)
    assert [answer.json()["duplicate"] for answer in answers] == [True, False]
    assert counts(app, id) == LONG.support_counts(np.concatenate([reports, more])).tolist()


@pytest.mark.sqlite
def test_report_is_answered_while_a_large_submission_is_counted(
    app: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = app.open_round("olh", 0.5, domain_size=100)
    began, gate, _ = hold_counting(monkeypatch)

    async def both() -> tuple[int, int]:
        slow = asyncio.create_task(send(app, long(id, 1)[0]))
        await asyncio.to_thread(began.wait, 30)
        quick = await send(app, long(id, 2, n=1)[0])
        assert not slow.done()
        gate.set()
        return quick.status_code, (await slow).status_code

    assert app.run(both()) == (202, 202)
    assert app.get(f"/rounds/{id}").json()["n"] == MANY + 1


@pytest.mark.sqlite
def test_abandoned_submissions_are_not_counted(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start_in_process(request_seconds=1)
    id = app.open_round("olh", 0.5, domain_size=100)
    _, gate, counted = hold_counting(monkeypatch)
    threads = len(app.ingest._counters)
    try:
        answers = app.gather(*(long(id, seed)[0] for seed in range(threads + 2)))
    finally:
        gate.set()
    assert {problem_of(answer) for answer in answers} == {"store-unavailable"}
    monkeypatch.undo()
    request, _ = long(id, 99, key="long")
    while app.gather(request)[0].status_code == 503:
        pass  # a busy machine may take longer than the second
    assert len(counted) == threads
    assert app.get(f"/rounds/{id}").json()["n"] == MANY


@pytest.mark.sqlite
def test_writer_answers_errors_of_counting_ahead(
    app: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = app.open_round("olh", 0.5, domain_size=100)
    request, reports = long(id, 1)

    def fail(submission: Submission) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(Submission, "count", fail)
    (answer,) = app.gather(request)
    assert answer.status_code == 202
    assert counts(app, id) == LONG.support_counts(reports).tolist()


def test_stored_digests_say_nothing_without_the_key(app: InProcess, id: str) -> None:
    """The same report under two keys has two digests, and neither is a hash of the report alone."""
    app.gather(post(id, [7], "a"), post(id, [7], "A."))
    with app.storage.database.read() as connection:
        rows = connection.execute(sa.select(submission_keys)).all()
    assert [(len(row.key), len(row.digest)) for row in rows] == [(16, 8), (16, 8)]
    assert {row.key[4:] for row in rows} == {
        hashlib.sha256(key).digest()[:12] for key in (b"a", b"A.")
    }
    assert len({row.digest for row in rows}) == 2
    plain = hashlib.sha256(np.array([7], dtype="<u4").tobytes()).digest()
    assert all(row.digest not in plain for row in rows)


@pytest.mark.sqlite
@pytest.mark.parametrize("error", [KeyError("boom"), SystemExit(3), MemoryError()])
def test_protocol_that_cannot_count_fails_its_round_alone(
    app: InProcess, id: str, commits: Commits, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The protocol fails for reports of item 49, which one of the two rounds of a group has."""
    summarise = GRR.summarise

    def summarise_or_fail(self: GRR, reports: Reports) -> Any:
        if (reports == 49).any():
            raise error
        return summarise(self, reports)

    monkeypatch.setattr(GRR, "summarise", summarise_or_fail)
    other = app.open_round("grr", domain_size=50)
    requests = [post(other, [3]), post(id, [1]), post(id, [49]), post(other, [4])]
    answers = in_one_group(app, commits, *requests)
    assert [answer.status_code for answer in answers] == [202, 500, 500, 202]
    assert [np.flatnonzero(counts(app, each)).tolist() for each in (id, other)] == [[], [3, 4]]
    assert app.run(send(app, post(id, [5]))).status_code == 202


@pytest.mark.sqlite
def test_unknown_error_of_a_commit_fails_one_round_of_its_group(
    app: InProcess, id: str, commits: Commits, caplog: pytest.LogCaptureFixture
) -> None:
    other = app.open_round("grr", domain_size=50)
    commits.before = [ValueError("boom"), GeneratorExit("boom")]
    requests = [post(id, [1], "a"), post(id, [2], "b"), post(other, [3], "c")]
    answers = in_one_group(app, commits, *requests)
    failed = [answer for answer in answers if answer.status_code != 202]
    assert {problem_of(answer) for answer in failed} == {"internal-error"}
    assert all("boom" not in answer.text for answer in failed)
    assert all(error in caplog.text for error in ("ValueError", "GeneratorExit"))
    assert sorted(commits.sizes) == [1, 1, 2, 3]
    assert {answer.status_code for answer in app.gather(*requests)} == {202}
    assert (counts(app, id)[:3], counts(app, other)[3]) == ([0, 1, 1], 1)

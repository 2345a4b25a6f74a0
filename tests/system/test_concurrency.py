"""Readers, closers and deleters among a clients of reporters."""

import itertools
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from tests.conftest import ServerProcess
from tests.system.conftest import NewClients, Submission, distinct_submissions, until_after


def test_frequencies_include_every_answered_report(
    server: ServerProcess, new_clients: NewClients
) -> None:
    """Every read after an answer includes its reports, wherever they are counted."""
    clients = new_clients(server, domain_size=5_000)
    checks = 0
    over = False

    def submissions() -> Iterator[Submission]:
        nonlocal over
        for number, submission in enumerate(distinct_submissions(2_400, 5_000)):
            if number >= 300 and checks > 10:
                break
            yield submission
        over = True

    async def read(http: httpx.AsyncClient) -> None:
        nonlocal checks
        last = 0
        while not over:
            answered = sum(len(submission.items) for submission in clients.answered())
            frequencies = (await http.get(f"/rounds/{clients.round_id}/frequencies")).json()
            assert frequencies["n"] == sum(frequencies["counts"]) >= max(answered, last)
            shown = (await http.get(f"/rounds/{clients.round_id}")).json()["n"]
            assert shown >= frequencies["n"]
            last = shown
            checks += 1

    clients.submit(submissions(), read, read)
    assert checks > 10
    assert len(clients.answered()) == len(clients.sent)
    assert clients.counts.sum() == sum(len(submission.items) for submission in clients.sent)


@pytest.mark.parametrize("after", [0, 40])
def test_no_report_enters_a_closed_round(
    server: ServerProcess, new_clients: NewClients, after: int
) -> None:
    """What was answered 202 is counted, what was answered 409 is not, and the number never moves
    again.
    """
    clients = new_clients(server, domain_size=5_000)
    submissions = iter(distinct_submissions(2_400, 5_000))
    n_at_close: list[int] = []
    late: list[httpx.Response] = []

    async def close(http: httpx.AsyncClient) -> None:
        await clients.until(after)
        answer = await http.post(f"/rounds/{clients.round_id}/close", headers=server.admin)
        assert answer.status_code == 200
        n_at_close.append(answer.json()["n"])
        late.extend(
            [
                await clients.post(http, submission)
                for submission in itertools.islice(submissions, 20)
            ]
        )

    clients.submit(until_after(n_at_close, submissions, 40), close)
    assert [answer.status_code for answer in late] == 20 * [409]
    assert len(clients.answered(202)) + len(clients.answered(409)) == len(clients.answers)
    assert len(clients.answered(409)) >= 40
    expected = np.zeros(5_000, dtype=np.int64)
    for submission in clients.answered(202):
        expected[list(submission.items)] = 1
    assert np.array_equal(clients.counts, expected)
    assert n_at_close == [server.frequencies(clients.round_id)["n"]] == [expected.sum()]


def test_round_deleted_under_load_is_404_and_others_continue(
    server: ServerProcess, new_clients: NewClients
) -> None:
    other, clients = new_clients(server, domain_size=100), new_clients(server, domain_size=5_000)
    others = distinct_submissions(30, 100)
    deleted: list[str] = []

    async def delete(http: httpx.AsyncClient) -> None:
        await clients.until(50)
        answer = await http.delete(f"/rounds/{clients.round_id}", headers=server.admin)
        assert answer.status_code == 204
        deleted.append(clients.round_id)
        assert (await http.get(f"/rounds/{clients.round_id}/frequencies")).status_code == 404

    async def use_another(http: httpx.AsyncClient) -> None:
        for submission in others:
            answer = await other.post(http, submission)
            assert answer.status_code == 202, answer.text

    async def list_rounds(http: httpx.AsyncClient) -> None:
        while not deleted:
            answer = await http.get("/rounds", params={"limit": 3})
            assert answer.status_code == 200
        answer = await http.get("/rounds", params={"limit": 3})
        assert clients.round_id not in [listed["id"] for listed in answer.json()["rounds"]]

    submissions = iter(distinct_submissions(2_400, 5_000))
    clients.submit(until_after(deleted, submissions, 40), delete, use_another, list_rounds)
    assert len(clients.answered(202)) >= 50
    assert len(clients.answered(404)) >= 40
    assert len(clients.answered(202)) + len(clients.answered(404)) == len(clients.answers)
    assert other.counts.sum() == sum(len(submission.items) for submission in others)

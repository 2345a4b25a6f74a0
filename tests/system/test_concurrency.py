"""Readers, closers and deleters among a crowd of reporters."""

import httpx
import numpy as np
from tests.conftest import ServerProcess
from tests.system.conftest import NewCrowd, distinct_submissions


def test_frequencies_never_show_fewer_reports_than_were_answered(server: ServerProcess, new_crowd: NewCrowd) -> None:
    """Whoever asks after an answer was given finds its reports, in each of the places that count them."""
    crowd = new_crowd(server, domain_size=1_000)
    submissions = distinct_submissions(500, 1_000)
    checks = 0

    async def read(http: httpx.AsyncClient) -> None:
        nonlocal checks
        last = 0
        while len(crowd.answers) < len(submissions):
            answered = sum(len(submission.items) for submission in crowd.answered())
            found = (await http.get(f"/rounds/{crowd.round_id}/frequencies")).json()
            assert found["n"] == sum(found["counts"]) >= max(answered, last)
            shown = (await http.get(f"/rounds/{crowd.round_id}")).json()["n"]
            assert shown >= found["n"]
            last = shown
            checks += 1

    crowd.submit(submissions, read, read)
    assert checks > 10
    assert len(crowd.answered()) == len(submissions)
    assert crowd.counts.sum() == sum(len(submission.items) for submission in submissions)


def test_no_report_enters_a_round_after_its_close_was_answered(server: ServerProcess, new_crowd: NewCrowd) -> None:
    """What was answered 202 is counted, what was answered 409 is not, and the number never moves again."""
    for close_after in (0, 1, 40, 111):
        crowd = new_crowd(server, domain_size=500)
        submissions = iter(distinct_submissions(220, 500))
        closed: dict[str, int] = {}
        late: list[httpx.Response] = []

        async def close(
            http: httpx.AsyncClient, crowd=crowd, submissions=submissions, closed=closed, late=late, after=close_after
        ) -> None:
            await crowd.until(after)
            answer = await http.post(f"/rounds/{crowd.round_id}/close", headers=server.admin)
            assert answer.status_code == 200
            closed["n"] = answer.json()["n"]
            for submission in [next(submissions) for _ in range(20)]:
                late.append(await crowd.post(http, submission))

        crowd.submit(submissions, close)
        assert [answer.status_code for answer in late] == 20 * [409]
        assert len(crowd.answered(202)) + len(crowd.answered(409)) == len(crowd.answers)
        assert crowd.answered(409)
        expected = np.zeros(500, dtype=np.int64)
        for submission in crowd.answered(202):
            expected[list(submission.items)] = 1
        assert np.array_equal(crowd.counts, expected)
        assert server.frequencies(crowd.round_id)["n"] == closed["n"] == expected.sum()


def test_a_round_deleted_under_load_answers_404_and_leaves_the_others_alone(
    server: ServerProcess, new_crowd: NewCrowd
) -> None:
    kept, crowd = new_crowd(server, domain_size=100), new_crowd(server, domain_size=1_000)

    async def delete(http: httpx.AsyncClient) -> None:
        await crowd.until(50)
        answer = await http.delete(f"/rounds/{crowd.round_id}", headers=server.admin)
        assert answer.status_code == 204
        assert (await http.get(f"/rounds/{crowd.round_id}/frequencies")).status_code == 404

    others = distinct_submissions(30, 100)

    async def use_another(http: httpx.AsyncClient) -> None:
        for submission in others:
            assert (await kept.post(http, submission)).status_code == 202

    async def list_rounds(http: httpx.AsyncClient) -> None:
        while len(crowd.answers) < 250:
            answer = await http.get("/rounds", params={"limit": 3})
            assert answer.status_code == 200

    crowd.submit(distinct_submissions(250, 1_000), delete, use_another, list_rounds)
    statuses = {answer.status_code for answer in crowd.answers.values()}
    assert statuses == {202, 404}
    assert kept.counts.sum() == sum(len(submission.items) for submission in others)

"""A round that is deleted while many clients report."""

import httpx
from tests.conftest import ServerProcess
from tests.system.conftest import NewClients, distinct_submissions, until_after


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

"""A round whose parameters were changed in the database: found, listed, deleted, and never used."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover_server.storage import Finding
from ldprecover_server.storage.schema import labels, rounds

OPENED: dict[str, Any] = {"protocol": "olh", "epsilon": 1.0, "hash_range": 4, "name": "tea"}
REPORTS = {"seeds": [1, 2], "buckets": [0, 3]}
ITEMS = b'["a", "b", "c", "d"]'


def changed(**values: Any) -> sa.Update:
    return sa.update(rounds).values(values)


def relabelled(items: bytes) -> sa.Update:
    return sa.update(labels).values({"items": items})


OF_PARAMETERS: dict[str, sa.UpdateBase] = {
    "epsilon": changed(epsilon=2.0),
    "no epsilon": changed(epsilon=-1.0),
    "p": changed(p=0.9),
    "q": changed(q=0.1),
    "parameter": changed(parameter=5),
    "protocol": changed(protocol="grr", parameter=None),
    "no parameter": changed(protocol="grr"),
}
OF_LABELS: dict[str, sa.UpdateBase] = {
    "domain size": changed(domain_size=5),
    "label": relabelled(ITEMS.replace(b"a", b"e")),
    "order": relabelled(b'["b", "a", "c", "d"]'),
    "number of labels": relabelled(b'["a", "b", "c"]'),
    "no list": relabelled(b"["),
    "no text": relabelled(ITEMS.replace(b"a", b"\xff")),
    "no labels": sa.delete(labels),
    "digest": changed(digest=64 * "0"),
    "practice": changed(practice=True),
}


def change(app: InProcess, id: str, damage: sa.UpdateBase) -> None:
    """Change the database, and have the application load the round as after a restart."""
    with app.storage.database.write() as connection:
        connection.execute(damage)
    round, cached = app.storage.rounds.find(id), app.app.state.services.rounds
    cached.evict(round)
    cached._labels.remove(round.seq)


@pytest.mark.parametrize(
    "damage", (OF_PARAMETERS | OF_LABELS).values(), ids=OF_PARAMETERS | OF_LABELS
)
def test_damaged_round_gives_no_number(
    start_in_process: StartInProcess, damage: sa.UpdateBase
) -> None:
    app = start_in_process(open_reports=10)
    id = app.open_round(**OPENED)
    reports = {"json": REPORTS, "headers": {"Idempotency-Key": "k"}}
    assert app.post(f"/rounds/{id}/reports", **reports).status_code == 202
    assert app.storage.check() == []
    change(app, id, damage)

    assert app.storage.check() == [
        Finding("tea", "parameters of the round's digest, p and q", 1, 0)
    ]
    results: list[Callable[[], Any]] = [
        lambda: app.get(f"/rounds/{id}"),
        lambda: app.get("/frequencies"),
        lambda: app.get(f"/rounds/{id}/export"),
        lambda: app.post(f"/rounds/{id}/recover", json={"method": "ldprecover"}),
        lambda: app.post(f"/rounds/{id}/recover", json={"method": "unmix"}),
        lambda: app.post(f"/rounds/{id}/certificate", json={"malicious_share": 0.01}),
    ]
    assert {problem_of(each()) for each in results} == {"round-damaged"}

    (listed,) = app.get("/rounds").json()["rounds"]
    assert listed["name"] == "tea"
    assert app.delete_round(id).status_code == 204


@pytest.mark.parametrize("damage", OF_PARAMETERS.values(), ids=OF_PARAMETERS)
def test_damaged_round_takes_no_report(
    start_in_process: StartInProcess, damage: sa.UpdateBase
) -> None:
    app = start_in_process()
    id = app.open_round(**OPENED)
    change(app, id, damage)
    for _ in range(2):
        answer = app.post(f"/rounds/{id}/reports", json={"seeds": [1], "buckets": [0]})
        assert problem_of(answer) == "round-damaged"
    assert app.get("/rounds").json()["rounds"][0]["n"] == 0

"""Keys and their scopes: who may open, submit and read, and what is rejected."""

import asyncio
import hashlib
import threading
from contextlib import closing
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from tests.conftest import ADMIN_KEY, PACKED
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover_server.access.access import CACHE_SECONDS, Access
from ldprecover_server.errors import (
    ForbiddenError,
    KeyNotFoundError,
    StoreUnavailableError,
    UnauthorizedError,
)
from ldprecover_server.keys import SCOPES, AccessKey, hash_key, make_key
from ldprecover_server.storage import Storage
from ldprecover_server.storage.schema import access_keys

SCOPED = ["admin", "analyst", "report"]


def add_key(app: InProcess, scope: str, name: str | None = None) -> dict[str, str]:
    """Make a key on the application's database, as `ldprecover key create` does, and return its
    header.
    """
    key = make_key()
    app.storage.keys.add(name or scope, scope, hash_key(key))
    return {"Authorization": f"Bearer {key}"}


def submit(app: InProcess, id: str, n: int, headers: dict[str, str]) -> httpx.Response:
    return app.post(f"/rounds/{id}/reports", content=n * b"\1\0\0\0", headers=PACKED | headers)


def count(app: InProcess, id: str) -> int:
    return int(app.get(f"/rounds/{id}").json()["n"])


WRONG = {
    "an unknown key": {"Authorization": "Bearer ldp-nobody-has-this-key"},
    "a key cut off": {"Authorization": f"Bearer {ADMIN_KEY[:-1]}"},
    "a key with more": {"Authorization": f"Bearer {ADMIN_KEY}x"},
    "no key after the scheme": {"Authorization": "Bearer "},
    "another scheme": {"Authorization": f"Basic {ADMIN_KEY}"},
    "nothing": {"Authorization": ""},
    "a ticket": {"Authorization": f"Ticket {'a' * 22}.{'a' * 22}"},
}


@pytest.mark.parametrize("access", ["open", "key"])
@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG.keys())
def test_rejects_wrong_key_even_if_none_is_needed(
    in_process: InProcess, headers: dict[str, str], access: str
) -> None:
    id = in_process.open_round(access=access)
    response = submit(in_process, id, 1, headers)
    assert response.status_code == 401
    assert problem_of(response) in ("unauthorized", "invalid-ticket")
    assert ADMIN_KEY not in response.text
    assert count(in_process, id) == 0


def test_anonymous_callers_submit_single_reports(in_process: InProcess) -> None:
    id = in_process.open_round()
    assert submit(in_process, id, 1, {}).status_code == 202
    response = submit(in_process, id, 2, {})
    assert problem_of(response) == "report-key-needed"
    assert "Authorization: Bearer KEY" in response.json()["detail"]
    assert count(in_process, id) == 1


def test_the_number_without_a_key_is_a_setting(start_in_process: StartInProcess) -> None:
    app = start_in_process(open_reports=5)
    id = app.open_round()
    assert [submit(app, id, n, {}).status_code for n in (5, 6)] == [202, 403]
    assert count(app, id) == 5


@pytest.mark.parametrize("access", ["open", "key"])
@pytest.mark.parametrize("scope", SCOPED)
def test_report_key_submits_many_and_analyst_key_none(
    start_in_process: StartInProcess, scope: str, access: str
) -> None:
    app = start_in_process()
    id = app.open_round(access=access)
    response = submit(app, id, 40, add_key(app, scope))
    if scope == "analyst":
        assert problem_of(response) == "forbidden"
        assert count(app, id) == 0
    else:
        assert response.json()["accepted"] == count(app, id) == 40


def test_without_a_key_a_key_round_takes_nothing(in_process: InProcess) -> None:
    id = in_process.open_round(access="key")
    response = submit(in_process, id, 1, {})
    assert problem_of(response) == "unauthorized"
    assert response.headers["www-authenticate"] == "Bearer"
    assert count(in_process, id) == 0


@pytest.mark.parametrize("scope", [None, *SCOPED])
def test_results_read_with_a_key_need_an_analyst(
    start_in_process: StartInProcess, scope: str | None
) -> None:
    """At the root too; parameters and the number of reports stay public."""
    app = start_in_process()
    id = app.open_round(read_access="key")
    assert submit(app, id, 1, {}).status_code == 202
    headers = add_key(app, scope) if scope else {}
    answers = [
        app.request(method, f"{prefix}/{path}", headers=headers)
        for prefix in (f"/rounds/{id}", "")
        for method, path in (("GET", "frequencies"), ("POST", "recover"))
    ]
    if scope in ("admin", "analyst"):
        assert [a.status_code for a in answers] == 4 * [200]
    else:
        expected = "unauthorized" if scope is None else "forbidden"
        assert {problem_of(a) for a in answers} == {expected}
        assert all("counts" not in a.text for a in answers)
    public = [app.get(f"/rounds/{id}"), app.get(f"/rounds/{id}/parameters")]
    assert [(a.status_code, a.json()["read_access"], a.json()["access"]) for a in public] == 2 * [
        (200, "key", "open")
    ]


@pytest.mark.parametrize("scope", SCOPED)
def test_only_an_admin_key_opens_closes_and_deletes(
    start_in_process: StartInProcess, scope: str
) -> None:
    app = start_in_process()
    id, headers = app.open_round(), add_key(app, scope)
    answers = [
        app.post(
            "/rounds", json={"protocol": "grr", "epsilon": 1, "domain_size": 4}, headers=headers
        ),
        app.post(f"/rounds/{id}/close", headers=headers),
        app.request("DELETE", f"/rounds/{id}", headers=headers),
    ]
    if scope == "admin":
        assert [a.status_code for a in answers] == [201, 200, 204]
    else:
        assert {problem_of(a) for a in answers} == {"forbidden"}
        assert app.get(f"/rounds/{id}").json()["state"] == "open"
        assert len(app.get("/rounds").json()["rounds"]) == 1


def test_several_keys_are_valid_until_each_is_revoked(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    id = app.open_round(read_access="key")
    first, second = add_key(app, "analyst", "first"), add_key(app, "analyst", "second")
    path = f"/rounds/{id}/frequencies"
    assert [app.get(path, headers=h).status_code for h in (first, second)] == [200, 200]
    app.storage.keys.revoke("first")
    refused = app.get(path, headers=first)
    assert problem_of(refused) == "unauthorized"
    assert app.get(path, headers=second).status_code == 200
    with pytest.raises(KeyNotFoundError):
        app.storage.keys.revoke("first")
    with pytest.raises(KeyNotFoundError):
        app.storage.keys.revoke("third")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_new_key_works_immediately_and_revoked_key_a_second_at_most(
    start_in_process: StartInProcess,
) -> None:
    app, clock = start_in_process(), Clock()
    access = Access(app.storage, None, clock=clock)

    def send(headers: dict[str, str]) -> str | None:
        sender = app.run(access.require_sender("R1", "key", headers["Authorization"]))
        return sender.key.name if sender.key else None

    first = add_key(app, "report", "first")
    assert send(first) == "first"
    second = add_key(app, "report", "second")
    assert send(second) == "second"
    app.storage.keys.revoke("first")
    clock.now += CACHE_SECONDS
    with pytest.raises(UnauthorizedError):
        send(first)
    assert send(second) == "second"


def test_keys_are_read_once_a_second(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, clock = start_in_process(), Clock()
    header = add_key(app, "report")["Authorization"]
    access = Access(app.storage, None, clock=clock)
    reads: list[float] = []
    active_keys = app.storage.keys.active

    def counted() -> Any:
        reads.append(clock.now)
        return active_keys()

    monkeypatch.setattr(app.storage.keys, "active", counted)

    async def crowd() -> None:
        await asyncio.gather(*(access.require_sender("R1", "open", header) for _ in range(50)))

    app.run(crowd())
    app.run(crowd())
    assert reads == [0.0]
    clock.now = 1.5
    app.run(crowd())
    assert reads == [0.0, 1.5]


def test_hanging_database_fails_all_waiting_callers_at_the_first_try(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One try after the other, the last of many would wait for minutes."""
    app = start_in_process()
    access = Access(app.storage, ADMIN_KEY)
    header, all_wait = f"Bearer {ADMIN_KEY}", threading.Event()
    active_keys, tries = app.storage.keys.active, 0

    def hung() -> Any:
        nonlocal tries
        tries += 1
        all_wait.wait()
        raise StoreUnavailableError("the database does not answer")

    async def crowd() -> list[Any]:
        waiting = [
            asyncio.ensure_future(access.require_sender("R1", "open", header)) for _ in range(50)
        ]
        asyncio.get_running_loop().call_soon(all_wait.set)
        return await asyncio.gather(*waiting, return_exceptions=True)

    monkeypatch.setattr(app.storage.keys, "active", hung)
    refused = app.run(crowd())
    assert {type(each) for each in refused} == {StoreUnavailableError}
    assert tries == 1
    monkeypatch.setattr(app.storage.keys, "active", active_keys)
    assert [sender.key.scope for sender in app.run(crowd())] == 50 * ["admin"]


def test_keys_are_kept_as_hashes_and_listed_without_them(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    key = add_key(app, "report", "crowd")["Authorization"].removeprefix("Bearer ")
    app.storage.keys.revoke("crowd")
    add_key(app, "admin", "boss")
    boss, crowd = app.storage.keys.all()
    assert (boss.name, boss.scope, boss.revoked_at) == ("boss", "admin", None)
    assert isinstance(crowd, AccessKey)
    assert crowd.created_at <= (crowd.revoked_at or "")
    assert not hasattr(crowd, "hash")
    with app.storage.database.read() as database:
        rows = [tuple(row) for row in database.execute(sa.select(access_keys))]
    assert all(key not in str(value) and value != key.encode() for row in rows for value in row)
    assert hashlib.sha256(key.encode()).digest() in {value for row in rows for value in row}


def test_settings_key_is_admin_beside_stored_keys(
    start_in_process: StartInProcess,
) -> None:
    app = start_in_process()
    access = Access(app.storage, ADMIN_KEY)
    assert [access.require(ADMIN_KEY, scope).scope for scope in SCOPES] == 3 * ["admin"]
    key = add_key(app, "analyst")["Authorization"].removeprefix("Bearer ")
    assert access.require(key, "analyst").name == "analyst"
    with pytest.raises(ForbiddenError, match="scope admin"):
        access.require(key, "admin")
    with pytest.raises(UnauthorizedError):
        access.require(None, "report")


def test_a_revoked_key_answers_neither_for_a_duplicate(start_in_process: StartInProcess) -> None:
    """Who has no key any more does not learn what was stored under it."""
    app = start_in_process()
    id, headers = (
        app.open_round(access="key"),
        add_key(app, "report", "crowd") | {"Idempotency-Key": "k"},
    )
    assert submit(app, id, 1, headers).status_code == 202
    app.storage.keys.revoke("crowd")
    other = Storage(app.storage.database.engine.url.render_as_string(hide_password=False))
    with closing(other):
        fresh = Access(other, None)
        with pytest.raises(UnauthorizedError):
            app.run(fresh.require_sender(id, "key", headers["Authorization"]))
    assert count(app, id) == 1

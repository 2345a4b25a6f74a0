"""Keys and their scopes: who may open, submit and read, and what is rejected."""

import asyncio
import hashlib
import threading
from collections.abc import Iterable
from typing import Any
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
from tests.conftest import ADMIN_KEY
from tests.server.access.conftest import Clock, add_key, submit
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover_server.access.access import CACHE_SECONDS, SCOPES, Access
from ldprecover_server.errors import ForbiddenError, StoreUnavailableError, UnauthorizedError
from ldprecover_server.storage import AccessKey, HashedKey
from ldprecover_server.storage.schema import access_keys

pytestmark = pytest.mark.sqlite

SCOPED = ["admin", "analyst", "report"]
READS = ["frequencies", "recover", "methods", "alarms", "stats", "export"]


def count(app: InProcess, id: str) -> int:
    return int(app.get(f"/rounds/{id}").json()["n"])


WRONG: dict[str, Any] = {
    "an unknown key": {"Authorization": "Bearer ldp-nobody-has-this-key"},
    "a key cut off": {"Authorization": f"Bearer {ADMIN_KEY[:-1]}"},
    "a key with more": {"Authorization": f"Bearer {ADMIN_KEY}x"},
    "no key after the scheme": {"Authorization": "Bearer "},
    "another scheme": {"Authorization": f"Basic {ADMIN_KEY}"},
    "nothing": {"Authorization": ""},
    "no scheme": {"Authorization": ADMIN_KEY},
    "not ASCII": {"Authorization": b"Bearer \xe9\xff"},
    "a ticket": {"Authorization": f"Ticket {'a' * 22}.{'a' * 22}"},
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG.keys())
def test_rejects_wrong_key_even_if_optional(in_process: InProcess, headers: dict[str, str]) -> None:
    id = in_process.open_round()
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


def test_limit_without_a_key_is_a_setting(start_in_process: StartInProcess) -> None:
    app = start_in_process(open_reports=5)
    id = app.open_round()
    assert [submit(app, id, n, {}).status_code for n in (5, 6)] == [202, 403]
    assert count(app, id) == 5


@pytest.mark.parametrize("access", ["open", "key"])
@pytest.mark.parametrize("scope", SCOPED)
def test_report_key_submits_many_and_analyst_key_none(
    in_process: InProcess, scope: str, access: str
) -> None:
    app = in_process
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
def test_results_read_with_a_key_need_an_analyst(in_process: InProcess, scope: str | None) -> None:
    """At the root too; parameters and the number of reports stay public."""
    app = in_process
    id = app.open_round(read_access="key")
    assert submit(app, id, 1, {}).status_code == 202
    headers = add_key(app, scope) if scope else {}
    answers = [app.get(f"/rounds/{id}/{path}", headers=headers) for path in READS]
    answers += [app.get("/frequencies", headers=headers), app.post("/recover", headers=headers)]
    certificate = {"json": {"malicious_share": 0.1}, "headers": headers}
    answers.append(app.post(f"/rounds/{id}/certificate", **certificate))
    if scope in ("admin", "analyst"):
        assert {a.status_code for a in answers} == {200}
    else:
        expected = "unauthorized" if scope is None else "forbidden"
        assert {problem_of(a) for a in answers} == {expected}
        assert all("counts" not in a.text for a in answers)
    public = [app.get(f"/rounds/{id}"), app.get(f"/rounds/{id}/parameters")]
    assert [(a.status_code, a.json()["read_access"], a.json()["access"]) for a in public] == 2 * [
        (200, "key", "open")
    ]


@pytest.mark.parametrize("scope", SCOPED)
def test_only_an_admin_key_opens_closes_and_deletes(in_process: InProcess, scope: str) -> None:
    app = in_process
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


@pytest.mark.parametrize("scope", SCOPED)
def test_states_what_a_key_may_do(in_process: InProcess, scope: str) -> None:
    key = add_key(in_process, scope, f"my-{scope}")
    assert in_process.get("/key", headers=key).json() == {"name": f"my-{scope}", "scope": scope}
    in_process.storage.keys.revoke(f"my-{scope}")
    assert problem_of(in_process.get("/key", headers=key)) == "unauthorized"
    assert problem_of(in_process.get("/key")) == "unauthorized"


def test_revoked_key_works_for_a_second_at_most(start_in_process: StartInProcess) -> None:
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


def read_keys(app: InProcess, monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return a mock that is called as the keys are, once a statement."""
    find = Mock(wraps=app.storage.keys.find)
    monkeypatch.setattr(app.storage.keys, "find", find)
    return find


async def gather(access: Access, headers: Iterable[str]) -> list[Any]:
    """Return the sender of each submission, or the error."""
    senders = (access.require_sender("R1", "open", header) for header in headers)
    return await asyncio.gather(*senders, return_exceptions=True)


def test_key_is_read_once_a_second(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, clock = start_in_process(), Clock()
    header = add_key(app, "report")["Authorization"]
    access = Access(app.storage, None, clock=clock)
    find = read_keys(app, monkeypatch)
    for seconds, reads in ((0.0, 1), (0.0, 1), (1.5, 2)):
        clock.now += seconds
        app.run(gather(access, 50 * [header]))
        assert find.call_count == reads


@pytest.mark.both
def test_unknown_keys_share_statements_that_read_no_other_key(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start_in_process()
    others = [add_key(app, "report")["Authorization"] for _ in range(3)]
    find, access = read_keys(app, monkeypatch), Access(app.storage, None)
    headers = [f"Bearer unknown-{i}" for i in range(1_200)]
    senders = app.run(gather(access, [*headers, others[0]]))
    assert {type(each) for each in senders[:-1]} == {UnauthorizedError}
    assert senders[-1].key.scope == "report"
    assert [len(call.args[0]) for call in find.call_args_list] == [500, 500, 201]
    assert app.storage.keys.find(find.call_args.args[0]).keys() == {senders[-1].key.hash}


def test_key_created_during_a_look_up_is_known(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown keys are not remembered, and a running statement does not speak for later ones."""
    app, was_read, is_created = start_in_process(), threading.Event(), threading.Event()
    access, find, key = Access(app.storage, None), app.storage.keys.find, "ldp-made-elsewhere"

    def find_slowly(hashes: set[bytes]) -> dict[bytes, HashedKey]:
        keys = find(hashes)
        was_read.set()
        is_created.wait(60)
        return keys

    async def send() -> list[bool]:
        early = asyncio.create_task(access.knows(key))
        await asyncio.to_thread(was_read.wait, 60)
        app.storage.keys.add("elsewhere", "report", hashlib.sha256(key.encode()).digest())
        asyncio.get_running_loop().call_soon(is_created.set)
        return [await access.knows(key), await early]

    monkeypatch.setattr(app.storage.keys, "find", find_slowly)
    assert app.run(send()) == [True, False]


def test_hanging_database_fails_all_waiting_callers(
    start_in_process: StartInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Separate attempts would have the last of many callers wait for minutes."""
    app = start_in_process()
    header, access = add_key(app, "admin")["Authorization"], Access(app.storage, ADMIN_KEY)
    all_wait, find, tries = threading.Event(), app.storage.keys.find, 0

    def hung(hashes: Any) -> Any:
        nonlocal tries
        tries += 1
        all_wait.wait()
        raise StoreUnavailableError("the database does not answer")

    async def send_many() -> list[Any]:
        asyncio.get_running_loop().call_soon(all_wait.set)
        return await gather(access, [*50 * [header], *others])

    others = [f"Bearer unknown-{i}" for i in range(1_200)]
    monkeypatch.setattr(app.storage.keys, "find", hung)
    assert {type(each) for each in app.run(send_many())} == {StoreUnavailableError}
    assert tries == 1
    assert app.run(gather(access, [f"Bearer {ADMIN_KEY}"]))[0].key.scope == "admin"
    monkeypatch.setattr(app.storage.keys, "find", find)
    assert [sender.key.scope for sender in app.run(send_many())[:50]] == 50 * ["admin"]


@pytest.mark.both
def test_keys_are_kept_as_hashes_and_listed_without_them(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    key = add_key(app, "report", "sender")["Authorization"].removeprefix("Bearer ")
    app.storage.keys.revoke("sender")
    add_key(app, "admin", "boss")
    boss, sender = app.storage.keys.all()
    assert (boss.name, boss.scope, boss.revoked_at) == ("boss", "admin", None)
    assert isinstance(sender, AccessKey)
    assert sender.created_at <= (sender.revoked_at or "")
    assert not hasattr(sender, "hash")
    with app.storage.database.read() as database:
        rows = [tuple(row) for row in database.execute(sa.select(access_keys))]
    assert all(key not in str(value) and value != key.encode() for row in rows for value in row)
    assert hashlib.sha256(key.encode()).digest() in {value for row in rows for value in row}


def test_settings_key_is_admin_beside_stored_keys(start_in_process: StartInProcess) -> None:
    app = start_in_process()
    access = Access(app.storage, ADMIN_KEY)
    assert [access.require(ADMIN_KEY, scope).scope for scope in SCOPES] == 3 * ["admin"]
    key = add_key(app, "analyst")["Authorization"].removeprefix("Bearer ")
    assert access.require(key, "analyst").scope == "analyst"
    with pytest.raises(ForbiddenError, match="scope admin"):
        access.require(key, "admin")
    with pytest.raises(UnauthorizedError):
        access.require(None, "report")

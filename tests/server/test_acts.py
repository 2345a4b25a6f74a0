"""Acts of admins: each is written once, with its change."""

import pytest
from tests.server.conftest import InProcess

from ldprecover_server.access.access import create_key

FORM = {
    "name": "usage",
    "assign": "client",
    "rounds": [{"protocol": "grr", "epsilon": 1.0, "domain_size": 4, "question": "How often?"}],
}


@pytest.mark.both
def test_an_act_is_written_once(in_process: InProcess) -> None:
    """With the name of its key; repeated calls, wrong keys and errors write nothing."""
    app, earlier = in_process, len(in_process.storage.acts.all())
    key = create_key(app.storage, "admin", "ada")
    ada = {"Authorization": f"Bearer {key}"}

    def call(method: str, path: str, *statuses: int, **options: object) -> None:
        """Call twice with the key, and before that with a wrong one."""
        wrong = {"Authorization": "Bearer wrong"}
        assert app.request(method, path, headers=wrong, **options).status_code == 401
        for status in statuses:
            assert app.request(method, path, headers=ada, **options).status_code == status

    new = {"protocol": "grr", "epsilon": 1.0, "domain_size": 4, "access": "ticket"}
    call("POST", "/rounds", 201, 409, json={"name": "cities", **new})
    call("POST", "/rounds/cities/tickets", 200, json={"count": 2})
    call("POST", "/rounds/cities/close", 200, 200)
    call("DELETE", "/rounds/cities", 204, 404)
    call("POST", "/forms", 201, 409, json=FORM)
    call("POST", "/forms/usage/tickets", 422, json={"count": 1})
    call("POST", "/forms/usage/close", 200, 200)
    call("DELETE", "/forms/usage", 204, 404)
    app.storage.keys.revoke("ada")
    written = app.storage.acts.all()
    assert [(act.key, act.act, act.subject) for act in written[: len(written) - earlier]] == [
        (None, "revoke key", "ada"),
        ("ada", "delete form", "usage"),
        ("ada", "close form", "usage"),
        ("ada", "open form", "usage"),
        ("ada", "delete round", "cities"),
        ("ada", "close round", "cities"),
        ("ada", "make 2 tickets", "cities"),
        ("ada", "open round", "cities"),
        (None, "create admin key", "ada"),
    ]

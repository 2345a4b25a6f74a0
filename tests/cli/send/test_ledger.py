"""`ledger` on reports to a real server."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

from ldprecover_client import RefusedError, Reporter


def test_lists_rounds_states_and_spent_epsilon(on_server: Run, server: ServerProcess):
    first, closed = (server.open_round(epsilon=e, items=["a", "b"]) for e in (0.5, 1.0))
    server.http.post(f"/rounds/{closed['id']}/close", headers=server.admin)
    on_server(f"send value a {first['name']}")
    refused = on_server(f"send value a {closed['name']}").fails(1)
    assert "is closed, so nothing was sent or spent" in refused
    assert on_server("send ledger --json").json["epsilon_spent"] == 0.5
    with pytest.raises(RefusedError):  # as if the round had closed meanwhile
        Reporter(server.url, closed["name"]).report("a")
    ledger = on_server("send ledger --json").json
    columns = ("round", "name", "epsilon", "state")
    assert [tuple(row[column] for column in columns) for row in ledger["reports"]] == [
        (first["id"], first["name"], 0.5, "accepted"),
        (closed["id"], closed["name"], 1.0, "refused"),
    ]
    assert "closed" in ledger["reports"][1]["reason"]
    assert ledger["epsilon_spent"] == 1.5
    shown = on_server(f"send ledger --ledger {ledger['ledger']}").out
    assert "2 reports: epsilon 1.5 spent in all" in shown
    for word in (first["name"], closed["name"], "accepted", "refused", server.url):
        assert word in shown


def test_creates_no_ledger(run: Run, tmp_path: Path):
    path = tmp_path / "state" / "ldprecover" / "ledger.sqlite3"
    shown = run("send ledger").succeeds()
    assert shown.out == f"No reports were sent from this machine: {path} is empty.\n"
    assert run("send ledger --json").json["reports"] == []
    for command in ("ledger", "resume"):
        error = run(f"send {command} --ledger l.db").fails(2)
        assert "Invalid value for '--ledger': path 'l.db' does not exist." in error
    assert list(tmp_path.iterdir()) == []

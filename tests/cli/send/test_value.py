"""Reporting one value on a real server, and without one."""

import contextlib
import signal
import socket

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess, StartServer

from ldprecover_client import Ledger, http
from ldprecover_client._httpx import httpx

TICKET = "w" * 22 + "." + "w" * 22


def test_reports_a_value_once(on_server: Run, lunch, server: ServerProcess):
    line = f"send value soup {lunch['name']} --ledger l.sqlite3"
    receipt = on_server(f"{line} --json").json
    fields = (receipt["round"], receipt["state"], receipt["epsilon"])
    assert fields == (lunch["id"], "accepted", 1.0)
    assert "epsilon" in on_server(line).fails(1)
    assert server.frequencies(lunch["id"])["n"] == 1


def test_asks_for_the_round_once(on_server: Run, lunch, monkeypatch):
    paths: list[str] = []
    handle_request = httpx.HTTPTransport.handle_request

    def record(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return handle_request(transport, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", record)
    on_server(f"send value soup {lunch['name']}").succeeds()
    assert paths == [f"/rounds/{lunch['name']}", f"/rounds/{lunch['id']}/reports"]


def test_unknown_item_gets_close_matches(on_server: Run, cities, server: ServerProcess):
    error = on_server(f"send value denver {cities['name']}").fails(2)
    assert "did you mean 'Denver, CO'" in error
    assert server.frequencies(cities["id"])["n"] == 0


def test_rejects_epsilon_above_the_users_limits(on_server: Run, server: ServerProcess):
    line = f"send value 1 {server.open_round('grr', 3.0)['name']}"
    assert "--max-epsilon" in on_server(line).fails(1)
    total = on_server(f"{line} --max-epsilon 3 --max-total-epsilon 2")
    assert "--max-total-epsilon" in total.fails(1)
    on_server(f"{line} --max-epsilon 3").succeeds()


def test_unanswered_report_is_stored_and_resumed(run: Run, start_server: StartServer, monkeypatch):
    """The server ends between parameters and report; another on its database takes the report."""
    server = start_server()
    server.keep_port()
    lunch = server.open_round("olh", 1.0)
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    claim = Ledger.claim

    def claim_and_kill(*args, **options):
        claimed = claim(*args, **options)
        server.kill()
        return claimed

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "claim", claim_and_kill)
        unanswered = run(f"send value 1 {lunch['name']}")
    assert "ldprecover send resume" in unanswered.fails(1)
    assert run("send resume --json").code == 1
    server.start()
    resumed = run("send resume --json").json["resent"]
    assert [(receipt["state"], receipt["resent"]) for receipt in resumed] == [("accepted", True)]
    assert server.frequencies(lunch["id"])["n"] == 1
    assert run("send resume").out == "Every report in the ledger has a response.\n"


def test_takes_the_right_ticket_after_a_wrong_one(on_server: Run, server: ServerProcess):
    round_ = server.open_round("grr", 1.0, access="ticket")
    ticket = on_server(f"admin ticket {round_['name']} --count 1").out.strip()
    line = f"send value 1 {round_['name']} --ledger l.sqlite3"
    assert "give one of its tickets; --ticket gives one" in on_server(line).fails(2)
    mistyped = on_server(f"{line} --ticket {ticket[:-1]}").fails(2)
    assert "a ticket must be 22 characters" in mistyped
    assert Ledger("l.sqlite3").spent == 0
    wrong = on_server(f"{line} --ticket {TICKET}").fails(1)
    assert "the same one goes out when you report again with another ticket" in wrong
    assert "an earlier report" in on_server(f"{line} --ticket {ticket}").succeeds().words
    assert server.frequencies(round_["id"])["n"] == 1


@pytest.mark.filterwarnings("default::ldprecover_client.errors.InsecureTransportWarning")
def test_warns_of_a_key_over_plain_http(run: Run, monkeypatch):
    """No resolver knows the name (RFC 6761), so nothing is sent."""
    monkeypatch.setattr(http, "_warned", set())
    monkeypatch.setenv("no_proxy", "*")
    result = run("send value soup --url http://nowhere.invalid --key 'a key'")
    assert result.code == 1
    warning, error = result.err.splitlines()
    assert warning.startswith("warning: the key goes to nowhere.invalid over plain http")
    assert error.startswith("error: ")


@pytest.mark.parametrize(
    ("line", "connections"), [("send value soup", 1), ("sim users --users 5", 2)]
)
def test_ctrl_c_while_the_server_is_silent_is_one_line(watched, line: str, connections: int):
    """With two connections the server closes each, and the command tries again."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        command = watched(f"{line} --url http://127.0.0.1:{listener.getsockname()[1]}")
        for _ in range(connections):
            connection = stack.enter_context(listener.accept()[0])
            if connections > 1:
                connection.close()
        command.process.send_signal(signal.SIGINT)
        assert command.ended() == (130, "")
        assert command.shown.splitlines() == ["Interrupted."]

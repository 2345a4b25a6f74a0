"""Reporting one value on a real server, and where there is none."""

import contextlib
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ldprecover_client import Ledger, load_dataset, transport_security


@pytest.fixture
def lunch(server: Any) -> Any:
    return server.open_round("grr", 1.0, items=["soup", "salad", "fish [and] chips"])


@pytest.fixture
def cities(server: Any) -> Any:
    return server.open_round("grr", 0.5, items=list(load_dataset("cities").items))


def test_one_value_is_reported_once(
    on_server: Any, lunch: Any, server: Any, tmp_path: Path
) -> None:
    arguments = ("report", "soup", "--round", lunch["name"], "--ledger", str(tmp_path / "ledger"))
    receipt = on_server(*arguments, "--json").json
    assert (receipt["round"], receipt["state"], receipt["epsilon"]) == (
        lunch["id"],
        "accepted",
        1.0,
    )
    again = on_server(*arguments)
    assert again.code == 1
    assert "epsilon" in again.error
    assert server.frequencies(lunch["id"])["n"] == 1


def test_the_ledger_is_in_the_state_directory_unless_told_otherwise(
    on_server: Any, lunch: Any, tmp_path: Path
) -> None:
    result = on_server("report", "fish [and] chips", "--round", lunch["name"])
    assert result.code == 0
    assert lunch["name"] in result.out
    assert (tmp_path / "state" / "ldprecover" / "ledger.sqlite3").is_file()
    assert on_server("report", "soup", "--round", lunch["name"]).code == 1


def test_a_value_that_is_no_item_gets_its_close_matches(
    on_server: Any, cities: Any, server: Any
) -> None:
    result = on_server("report", "denver", "--round", cities["name"])
    assert result.code == 2
    assert "did you mean 'Denver, CO'" in result.error
    assert server.frequencies(cities["id"])["n"] == 0


def test_epsilon_above_the_user_s_limits_is_refused(on_server: Any, server: Any) -> None:
    dear = server.open_round("grr", 3.0)
    high = on_server("report", "1", "--round", dear["name"])
    assert high.code == 1
    assert "--max-epsilon" in high.error
    total = on_server(
        "report", "1", "--round", dear["name"], "--max-epsilon", "3", "--max-total-epsilon", "2"
    )
    assert total.code == 1
    assert "--max-total-epsilon" in total.error
    assert server.frequencies(dear["id"])["n"] == 0
    assert on_server("report", "1", "--round", dear["name"], "--max-epsilon", "3").code == 0


def test_a_report_that_finds_no_answer_is_kept_and_resumed(
    run: Any, start_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is gone between the round's parameters and the report; another on the same
    database takes it.
    """
    own = start_server()
    port = int(own.url.rpartition(":")[2])
    lunch = own.open_round("olh", 1.0)
    monkeypatch.setenv("LDPRECOVER_URL", own.url)
    claim = Ledger.claim

    def claim_and_kill(*args: Any, **options: Any) -> Any:
        claimed = claim(*args, **options)
        own.kill()
        return claimed

    ledger = ("--ledger", str(tmp_path / "ledger"))
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "claim", claim_and_kill)
        lost = run("report", "1", "--round", lunch["name"], *ledger)
    assert lost.code == 1
    assert "ldprecover report --resume" in lost.error
    still_lost = run("report", "--resume", *ledger, "--json")
    assert still_lost.code == 1
    own._settings["port"] = port
    own.start()
    resumed = run("report", "--resume", *ledger, "--json").json["resent"]
    assert [(receipt["state"], receipt["resent"]) for receipt in resumed] == [("accepted", True)]
    assert own.frequencies(lunch["id"])["n"] == 1
    assert run("report", "--resume", *ledger).out == "Every report in the ledger has a response.\n"


def test_report_wants_a_value_or_resume(run: Any) -> None:
    assert "--resume" in run("report").error
    assert "--resume" in run("report", "soup", "--resume").error


def test_a_file_that_is_no_ledger_stays_as_it_is(
    on_server: Any, lunch: Any, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("soup on Monday\n")
    notes.chmod(0o644)
    result = on_server("report", "soup", "--round", lunch["name"], "--ledger", str(notes))
    assert result.code == 1
    assert f"{notes} is not a ledger" in result.error
    assert (notes.read_text(), stat.S_IMODE(notes.stat().st_mode)) == ("soup on Monday\n", 0o644)


def test_a_round_of_tickets_asks_for_one_and_takes_the_right_one_after_a_wrong_one(
    on_server: Any, server: Any, tmp_path: Path
) -> None:
    round_ = server.open_round("grr", 1.0, access="ticket")
    tickets = server.http.post(
        f"/rounds/{round_['id']}/tickets", headers=server.admin, json={"count": 1}
    ).text.split()
    report = ("report", "1", "--round", round_["name"], "--ledger", str(tmp_path / "ledger"))
    none = on_server(*report)
    assert (none.code, Ledger(tmp_path / "ledger").spent) == (2, 0)
    assert "give one of its tickets; --ticket gives one" in none.error
    mistyped = on_server(*report, "--ticket", tickets[0][:-1])
    assert (mistyped.code, Ledger(tmp_path / "ledger").spent) == (2, 0)
    assert "a ticket must be 22 characters" in mistyped.error
    wrong = on_server(*report, "--ticket", "w" * 22 + "." + "w" * 22)
    assert wrong.code == 1
    assert "the same one goes out when you report again with another ticket" in wrong.error
    (entry,) = Ledger(tmp_path / "ledger").pending()
    right = on_server(*report, "--ticket", *tickets)
    assert right.code == 0
    assert "an earlier report" in " ".join(right.out.split())  # in lines of 100 columns
    assert [kept.packed for kept in Ledger(tmp_path / "ledger").entries()] == [entry.packed]
    assert server.frequencies(round_["id"])["n"] == 1


def test_a_round_of_keys_asks_for_one_and_takes_the_right_one_after_a_wrong_one(
    on_server: Any, server: Any, tmp_path: Path
) -> None:
    round_ = server.open_round("grr", 1.0, access="key")
    report = ("report", "1", "--round", round_["name"], "--ledger", str(tmp_path / "ledger"))
    none = on_server(*report)
    assert (none.code, Ledger(tmp_path / "ledger").spent) == (2, 0)
    assert "give a report key; --key" in none.error
    wrong = on_server(*report, "--key", "no key of this server")
    assert wrong.code == 1
    assert "does not know this key" in wrong.error
    assert "the same one goes out when you report again" in wrong.error
    assert on_server(*report, "--key", server.admin_key).code == 0
    assert server.frequencies(round_["id"])["n"] == 1


def test_a_ticket_for_a_round_that_takes_none_is_refused(
    on_server: Any, lunch: Any, server: Any
) -> None:
    result = on_server(
        "report", "soup", "--round", lunch["name"], "--ticket", "w" * 22 + "." + "w" * 22
    )
    assert (result.code, result.error) == (2, "this round takes no tickets: report without one")
    assert server.frequencies(lunch["id"])["n"] == 0


def test_a_report_by_name_is_written_down_under_it(
    on_server: Any, server: Any, tmp_path: Path
) -> None:
    round_ = server.open_round("grr", 1.0)
    report = (
        "report",
        "1",
        "--round",
        round_["name"],
        "--by-name",
        "--ledger",
        str(tmp_path / "ledger"),
    )
    assert on_server(*report).code == 0
    assert [entry.round_id for entry in Ledger(tmp_path / "ledger").entries()] == [round_["name"]]
    again = on_server(*report)
    assert (again.code, server.frequencies(round_["id"])["n"]) == (1, 1)
    assert "this round has your report" in again.error
    refused = on_server("report", "1", "--round", round_["id"], "--by-name")
    assert refused.code == 2
    assert "--by-name needs the round's name" in refused.error


def test_resume_takes_no_ticket(run: Any) -> None:
    assert (
        "give VALUE and --round"
        in run("report", "--resume", "--ticket", "w" * 22 + "." + "w" * 22).error
    )


def test_a_key_over_plain_http_is_warned_of_on_standard_error(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is one that no resolver knows (RFC 6761), so nothing goes anywhere."""
    monkeypatch.setattr(transport_security, "_warned", set())
    monkeypatch.setenv("no_proxy", "*")
    result = run("report", "soup", "--url", "http://nowhere.invalid", "--key", "a key")
    assert result.code == 1
    warning, error = result.err.splitlines()
    assert warning.startswith("warning: the key goes to nowhere.invalid over plain http")
    assert error.startswith("error: ")


class Stranger:
    """Something that listens where a server was meant to be; what it does with a caller is `meet`'s
    affair.
    """

    def __init__(self, meet: Callable[[socket.socket], None], calls: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._met: list[socket.socket] = []
        self._meet = meet
        self._calls = calls

    def wait(self) -> None:
        """Meet so many callers; their connections stay open."""
        for _ in range(self._calls):
            caller, _ = self._listener.accept()
            self._met.append(caller)
            self._meet(caller)

    def close(self) -> None:
        for each in (*self._met, self._listener):
            each.close()


@pytest.mark.parametrize(
    ("meet", "calls"),
    [(lambda caller: None, 1), (lambda caller: caller.close(), 2)],
    ids=["says nothing", "hangs up, and is called again"],
)
@pytest.mark.parametrize(
    "arguments", [("report", "soup"), ("simulate", "--users", "5"), ("frequencies",)], ids=" ".join
)
def test_ctrl_c_while_the_server_is_away_is_one_line(
    watched: Any, meet: Callable[[socket.socket], None], calls: int, arguments: tuple[str, ...]
) -> None:
    with contextlib.closing(Stranger(meet, calls)) as stranger:
        command = watched(*arguments, "--url", stranger.url)
        stranger.wait()
        command.process.send_signal(signal.SIGINT)
        assert command.ended() == (130, "")
        assert command.shown.splitlines() == ["Interrupted."]


def test_former_option_html_names_document(run: Any) -> None:
    result = run("report", "cities", "--html", "cities.html")
    assert result.code == 2
    assert "ldprecover document ROUND --output FILE" in result.error

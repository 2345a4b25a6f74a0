"""Runs of many users that are interrupted, by a killed server or a killed program, and go on."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ServerProcess, StartServer

N = 120_000
"""Twelve submissions, of which nine at most are under way when the first is accepted: no kill then
comes too late.
"""

COMMANDS = [("simulate",), ("attack", "mga", "--targets", "2")]


@pytest.fixture
def mortal(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> ServerProcess:
    """A server that may be killed and comes back at the same URL."""
    server = start_server()
    server.keep_port()
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", server.admin_key)
    return server


@pytest.fixture
def at_first_progress(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Have something happen once the first submission of a run is accepted, in place of a bar."""

    def arrange(happen: Callable[[], None]) -> None:
        left = [happen]

        @contextmanager
        def bar(*args: object, **options: object) -> Iterator[Callable[[int, int], None]]:
            def move(done: int, total: int) -> None:
                if done and left:
                    left.pop()()

            yield move

        for module in ("ldprecover_client.population", "ldprecover_attacker.campaign"):
            monkeypatch.setattr(f"{module}.progress_bar", bar)

    return arrange


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_run_waits_for_a_server_that_was_killed(
    run: Any, mortal: ServerProcess, at_first_progress: Any, command: Any
) -> None:
    round_ = mortal.open_round()
    at_first_progress(mortal.restart)
    result = run(*command, "--users", str(N), "--round", round_["name"], "--wait")
    assert result.code == 0, result.err
    assert mortal.frequencies(round_["id"])["n"] == N
    assert result.err in (
        "",
        "The server accepts no reports now. Waiting until it does; Ctrl-C ends this.\n",
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_run_that_a_killed_server_ended_is_gone_on_with(
    run: Any, mortal: ServerProcess, at_first_progress: Any, tmp_path: Path, command: Any
) -> None:
    round_ = mortal.open_round()
    at_first_progress(mortal.kill)
    result = run(*command, "--users", str(N), "--round", round_["name"], "--seed", "3")
    assert result.code == 1
    assert f"`ldprecover {command[0]} --resume` sends the rest" in result.error
    mortal.start()
    mortal.open_round()  # is the current one; the run goes on in its own
    before = mortal.frequencies(round_["id"])["n"]
    assert 0 < before < N
    answer = run(command[0], "--resume", "--json").json
    assert (answer["accepted"], answer["seed"], answer["round"]) == (N, 3, round_["id"])
    assert mortal.frequencies(round_["id"])["n"] == N
    assert not list((tmp_path / "state" / "ldprecover" / "runs").iterdir())
    again = run(command[0], "--resume")
    assert again.code == 2
    assert f"no interrupted run of `ldprecover {command[0]}`" in again.error


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_run_under_tickets_goes_on_under_the_same(
    run: Any,
    mortal: ServerProcess,
    at_first_progress: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Any,
) -> None:
    round_ = mortal.open_round(protocol="olh", access="ticket", given_seeds=64, domain_size=6)
    tickets = run("ticket", "mint", round_["name"], "--count", "400").out
    file = tmp_path / "t.txt"
    file.write_text(tickets)
    at_first_progress(mortal.kill)
    result = run(*command, "--tickets", "t.txt", "--round", round_["name"])
    assert f"`ldprecover {command[0]} --resume` sends the rest" in result.error
    assert (
        tickets.split()[0]
        not in next((tmp_path / "state" / "ldprecover" / "runs").iterdir()).read_text()
    )
    mortal.start()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file.write_text("\n".join(tickets.split()[::-1]))
    changed = run(command[0], "--resume")
    assert changed.code == 2
    assert "no longer contains the tickets of the interrupted run" in changed.error
    assert "leave out --tickets" in run(command[0], "--resume", "--tickets", str(file)).error
    file.write_text(tickets)
    assert run(command[0], "--resume", "--json").json["accepted"] == 400
    assert mortal.frequencies(round_["id"])["n"] == 400


def test_a_killed_program_goes_on_from_another_folder(
    run: Any, mortal: ServerProcess, watched: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "menu.csv").write_text("item,count\na,3\nb,1\n")
    n = 3_000_000
    round_ = mortal.open_round(items=["a", "b"])
    arguments = ("simulate", "--users", str(n), "--dataset", "menu.csv", "--round", round_["name"])
    crowd = watched(*arguments)
    assert crowd.watch(until=f"0000/{n}")
    crowd.process.send_signal(signal.SIGKILL)
    crowd.ended()
    mortal.restart()
    assert 0 < mortal.frequencies(round_["id"])["n"] < n
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run("simulate", "--resume", "--round", round_["name"]).code == 0
    assert mortal.frequencies(round_["id"])["n"] == n


def test_a_run_that_the_round_refuses_for_good_is_not_kept(
    run: Any, mortal: ServerProcess, at_first_progress: Any, tmp_path: Path
) -> None:
    round_ = mortal.open_round()
    at_first_progress(
        lambda: mortal.http.post(f"/rounds/{round_['id']}/close", headers=mortal.admin) and None
    )
    result = run("simulate", "--users", "600000", "--round", round_["name"])
    assert "The round is closed" in result.error
    assert "--resume" not in result.error
    assert not list((tmp_path / "state" / "ldprecover" / "runs").iterdir())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_was_begun_cannot_be_changed(run: Any, command: Any) -> None:
    result = run(command[0], "--resume", "--users", "5", "--seed", "1")
    assert result.code == 2
    assert "leave out --users, --seed" in result.error


def test_only_runs_of_the_round_that_is_named_go_on(
    run: Any, mortal: ServerProcess, at_first_progress: Any
) -> None:
    round_ = mortal.open_round()
    at_first_progress(mortal.kill)
    run("simulate", "--users", str(N), "--round", round_["name"])
    other = run("simulate", "--resume", "--round", "another")
    assert other.code == 2
    assert "in round another" in other.error


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_run_of_another_server_is_kept_and_said_to_be(
    run: Any,
    mortal: ServerProcess,
    start_server: StartServer,
    at_first_progress: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Any,
) -> None:
    round_ = mortal.open_round()
    at_first_progress(mortal.kill)
    run(*command, "--users", str(N), "--round", round_["name"])
    (journal,) = (tmp_path / "state" / "ldprecover" / "runs").iterdir()
    unanswered = run(command[0], "--resume")
    assert unanswered.code == 1
    assert f"removing {journal} discards the run" in unanswered.error
    mortal.start()
    other = start_server()
    monkeypatch.setenv("LDPRECOVER_URL", other.url)
    elsewhere = run(command[0], "--resume")
    assert elsewhere.code == 1
    assert elsewhere.error == (
        f"this server lacks the round {round_['name']} of the interrupted run, which is on "
        f"{mortal.url}: name that server with --url, or remove {journal} to discard the run"
    )
    assert run(command[0], "--resume", "--url", mortal.url).code == 0
    assert mortal.frequencies(round_["id"])["n"] == N


def test_of_several_runs_that_of_the_server_named_goes_on(
    run: Any,
    mortal: ServerProcess,
    start_server: StartServer,
    at_first_progress: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = start_server()
    other.keep_port()
    rounds = {}
    for server in (mortal, other):
        rounds[server.url] = server.open_round()
        at_first_progress(server.kill)
        run(
            "simulate",
            "--users",
            str(N),
            "--round",
            rounds[server.url]["name"],
            "--url",
            server.url,
        )
        server.start()
    assert (
        run("simulate", "--resume", "--url", mortal.url + "/", "--json").json["round"]
        == rounds[mortal.url]["id"]
    )
    assert (
        run("simulate", "--resume", "--url", other.url, "--json").json["round"]
        == rounds[other.url]["id"]
    )

"""Interrupted runs of simulated users continue after the server or the program was killed."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess, StartServer

N = 120_000
"""Twelve submissions, of which nine at most are in progress when the first is accepted, so that a
kill at that time is never too late.
"""

BOTH = pytest.mark.parametrize("command", ["sim users", "sim attack mga --targets 2"])

Interrupt = Callable[[Callable[[], object]], None]


@pytest.fixture
def mortal(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> ServerProcess:
    """A server that may be killed and comes back at the same URL."""
    server = start_server()
    server.keep_port()
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", server.admin_key)
    return server


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The folder of journals."""
    return tmp_path / "state" / "ldprecover" / "runs"


@pytest.fixture
def at_first_progress(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Call a function once the first submission of a run is accepted, in place of a bar."""

    def arrange(act: Callable[[], object]) -> None:
        actions = [act]

        @contextmanager
        def bar(*args: object, **options: object) -> Iterator[Callable[[int, int], None]]:
            def move(done: int, total: int) -> None:
                if done and actions:
                    actions.pop()()

            yield move

        for module in ("ldprecover_client.population", "ldprecover_attacker.campaign"):
            monkeypatch.setattr(f"{module}.progress_bar", bar)

    return arrange


@BOTH
def test_run_waits_for_a_killed_server(
    run: Run, mortal: ServerProcess, at_first_progress: Interrupt, command: str
) -> None:
    round_ = mortal.open_round()
    at_first_progress(mortal.restart)
    result = run(f"{command} --users {N} --round {round_['name']} --wait").succeeds()
    assert mortal.frequencies(round_["id"])["n"] == N
    waiting = "The server accepts no reports now. Waiting until it does; Ctrl-C ends this.\n"
    assert result.err in ("", waiting)


@BOTH
def test_resumes_a_run_on_its_own_server_and_round(
    run: Run,
    mortal: ServerProcess,
    start_server: StartServer,
    at_first_progress: Interrupt,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    round_, resume = mortal.open_round(), f"{' '.join(command.split()[:2])} --resume"
    at_first_progress(mortal.kill)
    error = run(f"{command} --users {N} --round {round_['name']} --seed 3").fails(1)
    assert f"`ldprecover {resume}` sends the rest" in error
    (journal,) = runs.iterdir()
    assert f"removing {journal} discards the run" in run(resume).fails(1)
    assert "in round another" in run(f"{resume} --round another").fails(2)
    mortal.start()
    mortal.open_round()  # is the current round now
    assert 0 < mortal.frequencies(round_["id"])["n"] < N
    monkeypatch.setenv("LDPRECOVER_URL", start_server().url)
    assert run(resume).fails(1) == (
        f"this server lacks the round {round_['name']} of the interrupted run, which is on "
        f"{mortal.url}: name that server with --url, or remove {journal} to discard the run"
    )
    sent = run(f"{resume} --url {mortal.url} --json").json
    assert (sent["accepted"], sent["seed"], sent["round"]) == (N, 3, round_["id"])
    assert mortal.frequencies(round_["id"])["n"] == N
    assert not list(runs.iterdir())
    assert f"no interrupted run of `ldprecover {' '.join(command.split()[:2])}`" in run(
        resume
    ).fails(2)


@BOTH
def test_resumes_with_the_same_tickets(
    run: Run,
    mortal: ServerProcess,
    at_first_progress: Interrupt,
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    round_, resume = (
        mortal.open_round(
            protocol="llh", access="ticket", assigned_seeds=True, tickets=900, domain_size=6
        ),
        f"{' '.join(command.split()[:2])} --resume",
    )
    tickets = run(f"admin ticket {round_['name']} --count 400").out
    file = tmp_path / "t.txt"
    file.write_text(tickets)
    at_first_progress(mortal.kill)
    error = run(f"{command} --tickets t.txt --round {round_['name']}").error
    assert f"`ldprecover {resume}` sends the rest" in error
    (journal,) = runs.iterdir()
    assert tickets.split()[0] not in journal.read_text()
    mortal.start()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file.write_text("\n".join(tickets.split()[::-1]))
    assert "no longer contains the tickets of the interrupted run" in run(resume).fails(2)
    assert "leave out --tickets" in run(f"{resume} --tickets {file}").error
    file.write_text(tickets)
    assert run(f"{resume} --json").json["accepted"] == 400
    assert mortal.frequencies(round_["id"])["n"] == 400


def test_resumes_after_a_kill_from_another_folder(
    run: Run, mortal: ServerProcess, watched: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("menu.csv").write_text("item,count\na,3\nb,1\n")
    n, round_ = 1_000_000, mortal.open_round(items=["a", "b"])
    users = watched(f"sim users --users {n} --dataset menu.csv --round {round_['name']}")
    assert users.watch(until=f"0000/{n}")
    users.process.send_signal(signal.SIGKILL)
    users.ended()
    mortal.restart()
    assert 0 < mortal.frequencies(round_["id"])["n"] < n
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run(f"sim users --resume --round {round_['name']}").succeeds()
    assert mortal.frequencies(round_["id"])["n"] == n


def test_discards_a_run_that_the_round_rejects_permanently(
    run: Run, mortal: ServerProcess, at_first_progress: Interrupt, runs: Path
) -> None:
    round_ = mortal.open_round()
    at_first_progress(
        lambda: mortal.http.post(f"/rounds/{round_['id']}/close", headers=mortal.admin)
    )
    error = run(f"sim users --users 600000 --round {round_['name']}").error
    assert "The round is closed" in error
    assert "--resume" not in error
    assert not list(runs.iterdir())


@pytest.mark.parametrize("command", ["sim users", "attack"])
def test_rejects_other_options_of_a_resumed_run(run: Run, command: str) -> None:
    error = run(f"{command} --resume --users 5 --seed 1").fails(2)
    assert "leave out --users, --seed" in error


def test_resumes_the_run_of_the_named_server(
    run: Run, mortal: ServerProcess, start_server: StartServer, at_first_progress: Interrupt
) -> None:
    other = start_server()
    other.keep_port()
    rounds = {}
    for server in (mortal, other):
        rounds[server.url] = server.open_round()
        at_first_progress(server.kill)
        run(f"sim users --users {N} --round {rounds[server.url]['name']} --url {server.url}")
        server.start()
    for url, slash in ((mortal.url, "/"), (other.url, "")):
        resumed = run(f"sim users --resume --url {url}{slash} --json").json
        assert resumed["round"] == rounds[url]["id"]

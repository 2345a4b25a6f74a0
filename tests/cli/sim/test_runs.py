"""Interrupted runs of simulated users are completed by the same command with the same seed."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess

N = 120_000
"""Twelve submissions, of which nine at most are in progress when the first is accepted, so that a
kill at that time is never too late.
"""

Interrupt = Callable[[Callable[[], object]], None]


@pytest.fixture(scope="module")
def restarted(forking: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that comes back at the same URL; each test leaves it running."""
    server = ServerProcess(tmp_path_factory.mktemp("server"), kernels="numpy", analyses=1)
    with closing(server):
        server.start()
        server.keep_port()
        yield server


@pytest.fixture
def mortal(restarted: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> ServerProcess:
    """A server that may be killed."""
    monkeypatch.setenv("LDPRECOVER_URL", restarted.url)
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", restarted.admin_key)
    return restarted


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

        monkeypatch.setattr("ldprecover_client.bulk.progress_bar", bar)

    return arrange


def test_run_waits_for_a_killed_server(
    run: Run, mortal: ServerProcess, at_first_progress: Interrupt
):
    round_ = mortal.open_round()
    at_first_progress(mortal.restart)
    result = run(f"sim users --users {N} {round_['name']} --wait --seed 1").succeeds()
    assert mortal.frequencies(round_["id"])["n"] == N
    waiting = "The server accepts no reports now. Waiting until it does; Ctrl-C ends this.\n"
    assert result.err in ("", waiting)


@pytest.mark.parametrize("command", ["sim users", "sim attack mga --targets 2"])
def test_same_command_and_seed_send_the_rest(
    run: Run, mortal: ServerProcess, at_first_progress: Interrupt, command: str
):
    round_ = mortal.open_round()
    line = f"{command} --users {N} {round_['name']} --seed 3"
    at_first_progress(mortal.kill)
    least = re.search(r"at least (\d+) of \d+ reports were accepted", run(line).fails(1))
    mortal.start()
    sent_before = mortal.frequencies(round_["id"])["n"]
    assert least is not None
    assert 0 < int(least[1]) <= sent_before < N
    rest = run(f"{line} --json").json
    assert (rest["accepted"], rest["duplicates"]) == (N, sent_before)
    assert mortal.frequencies(round_["id"])["n"] == N
    assert run(line).succeeds().words == (
        f"Nothing new was sent: {round_['name']} has these {N:,} reports already."
    )
    assert mortal.frequencies(round_["id"])["n"] == N


def test_interrupted_run_of_tickets_is_completed(
    run: Run, mortal: ServerProcess, at_first_progress: Interrupt, tmp_path: Path
):
    round_ = mortal.open_round(access="ticket", domain_size=6)
    file = tmp_path / "t.txt"
    file.write_text(run(f"admin ticket {round_['name']} --count 400").out)
    line = f"sim attack mga --targets 2 --tickets t.txt {round_['name']} --seed 5"
    at_first_progress(mortal.kill)
    assert "reports were accepted" in run(line).fails(1)
    mortal.start()
    assert run(f"{line} --json").json["accepted"] == 400
    assert mortal.frequencies(round_["id"])["n"] == 400


def test_killed_run_has_printed_its_seed(run: Run, mortal: ServerProcess, watched):
    n, round_ = 1_000_000, mortal.open_round(items=["a", "b"])
    line = f"sim users --users {n}"
    users = watched(line)
    assert users.watch(until=f"0000/{n}")
    users.process.send_signal(signal.SIGKILL)
    users.ended()
    shown = " ".join(users.shown.split())
    options = re.search(r"the same command for the round (\S+) with (.+) sends the rest\.", shown)
    assert options
    assert options[1] == round_["name"]
    assert 0 < mortal.frequencies(round_["id"])["n"] < n
    mortal.open_round()  # is the current round now
    run(f"{line} {options[1]} {options[2]}").succeeds()
    assert mortal.frequencies(round_["id"])["n"] == n


def test_run_by_share_prints_its_number_of_users(
    run: Run, mortal: ServerProcess, at_first_progress: Interrupt
):
    """A share of the reports is another number after a part of the run was sent."""
    round_ = mortal.open_round()
    at = f"{round_['name']}"
    run(f"sim users {at} --users 60000").succeeds()
    at_first_progress(mortal.kill)
    err = run(f"sim attack mga {at} --beta 0.5").err
    options = re.search(r"the same command with (--users 60000 --seed \d+) sends the rest\.", err)
    assert options
    mortal.start()
    run(f"sim attack mga {at} {options[1]}").succeeds()
    assert mortal.frequencies(round_["id"])["n"] == 120_000


def test_same_seed_with_other_users_counts_nothing_twice(run: Run, mortal: ServerProcess):
    round_ = mortal.open_round("olh", 0.5)
    line = f"sim users {round_['name']} --seed 3 --users"
    run(f"{line} 500").succeeds()
    assert "give another --seed" in run(f"{line} 400").fails(1)
    assert mortal.frequencies(round_["id"])["n"] == 500

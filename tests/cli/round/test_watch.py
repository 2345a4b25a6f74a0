"""A round is followed until it is closed or Ctrl-C, as lines in a pipe or on a terminal."""

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run, Watched
from tests.conftest import ServerProcess, StartServer

from ldprecover import GRR
from ldprecover.protocols.wire import pack
from ldprecover_cli.round.watch import _Follower, whisker
from ldprecover_client import Client, RefusedError
from ldprecover_client.leader import certified_leader


def opened(server: ServerProcess, reports: int = 300) -> str:
    """Open a round with reports of its first item."""
    id: str = server.open_round("grr", 3.0, items=("red", "green", "blue\u202e"))["id"]
    fill(server, id, reports)
    return id


def fill(server: ServerProcess, id: str, reports: int) -> None:
    rows = GRR(3.0, 3).perturb(np.zeros(reports, np.int64), np.random.default_rng(3))
    if reports:
        assert server.submit(id, pack(rows)).status_code == 202


def close(server: ServerProcess, id: str) -> None:
    server.http.post(f"/rounds/{id}/close", headers=server.admin)


@pytest.fixture
def watching(watched: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Watched]:
    """Start `ldprecover round watch` with standard output into a pipe or a terminal."""
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "PYTHONUTF8": "1"}.items():
        monkeypatch.setenv(name, value)

    def start(server: ServerProcess, id: str, *, terminal: bool = False) -> Watched:
        line = f"round watch {id} --every 0.2 --url {server.url}"
        watcher: Watched = watched(line, stdout=True, terminal=terminal)
        return watcher

    return start


def test_closed_round_is_one_line(on_server: Run, server: ServerProcess) -> None:
    id = opened(server)
    close(server, id)
    shown = on_server(f"round watch {id} --top 1").succeeds()
    assert shown.err == ""
    assert shown.out.startswith(f"{id}: closed, 300 reports, 0 a second; raised alarms: ")
    assert shown.out.count("\n") == 1
    assert "; red " in shown.out
    assert "blue" not in shown.out


NOISE = "The noise exceeds what tells the items apart: noise 250 points, spread 0 points."


@pytest.fixture
def noisy(server: ServerProcess) -> str:
    """A closed round of 30 reports of three items, 10 of each."""
    id: str = server.open_round("grr", 0.1, items=("red", "green", "blue"))["id"]
    assert server.submit(id, pack(GRR(0.1, 3).encode([0, 1, 2] * 10))).status_code == 202
    close(server, id)
    return id


def test_line_states_what_is_certain_of_the_leader(on_server: Run, server: ServerProcess) -> None:
    id = opened(server)
    close(server, id)
    out = on_server(f"round watch {id} --top 1").succeeds().out
    with Client(server.url) as client:
        answer = certified_leader(client, id)
    assert answer is not None
    assert f"; {answer['answers'][0]['sentence']}" in out
    assert "red leads. That holds even if up to " in out


def test_leader_of_an_attacked_round_is_not_certain(server: ServerProcess) -> None:
    """Every report supports two of three items or more, as no honest users' would."""
    id = server.open_round("oue", 3.0, items=("red", "green", "blue"))["id"]
    assert server.submit(id, bytes([0b111] * 500 + [0b011] * 500)).status_code == 202
    with Client(server.url) as client:
        answer = certified_leader(client, id)
    assert answer is not None
    assert answer["least_malicious_share"] > 0.1
    assert answer["answers"][0]["sentence"].startswith(
        "red leads among the numbers as collected, but this is not certain: the reports prove that "
        "at least "
    )


def test_line_names_the_noise(on_server: Run, noisy: str) -> None:
    assert on_server(f"round watch {noisy}").out.endswith(f"; {NOISE}\n")


def test_terminal_names_the_noise(server: ServerProcess, noisy: str, watching: Any) -> None:
    assert watching(server, noisy, terminal=True).watch(NOISE[:40])


@pytest.mark.parametrize("command", ["frequencies", "recover"])
def test_results_name_the_noise(on_server: Run, noisy: str, command: str) -> None:
    shown = " ".join(on_server(f"{command} --round {noisy}").out.split())
    assert f"Note: {NOISE}" in shown


def test_every_change_is_a_line_until_the_round_is_closed(
    server: ServerProcess, watching: Any
) -> None:
    id = opened(server, reports=0)
    watcher = watching(server, id)
    assert watcher.watch("open, 0 reports, 0 a second\n")
    fill(server, id, 50)
    assert watcher.watch("open, 50 reports")
    assert watcher.watch("blue\N{REPLACEMENT CHARACTER}")
    close(server, id)
    assert watcher.watch("closed, 50 reports")
    assert watcher.ended() == (0, "")


def test_terminal_shows_whiskers_until_ctrl_c(server: ServerProcess, watching: Any) -> None:
    watcher = watching(server, opened(server), terminal=True)
    assert watcher.watch("Ctrl-C stops watching")
    assert "300 reports" in watcher.shown
    assert "●" in watcher.shown
    watcher.process.send_signal(signal.SIGINT)
    assert watcher.ended() == (0, "")


def test_deleted_round_is_an_error(server: ServerProcess, watching: Any) -> None:
    id = opened(server)
    watcher = watching(server, id)
    assert watcher.watch("300 reports")
    server.http.delete(f"/rounds/{id}", headers=server.admin)
    code, error = watcher.ended()
    assert code == 1
    assert error.startswith("error: no round is called")


def test_waits_for_a_killed_server(start_server: StartServer, watching: Any) -> None:
    server = start_server()
    server.keep_port()
    id = opened(server)
    watcher = watching(server, id)
    assert watcher.watch("open, 300 reports")
    server.kill()
    assert watcher.watch("does not answer")
    server.start()
    fill(server, id, 1)
    assert watcher.watch("open, 301 reports")


def test_rejected_alarms_are_requested_again_only_at_the_end(server: ServerProcess) -> None:
    """Alarms may read every report, and the server has just said that it is busy."""
    requests: list[str] = []

    class Busy(Client):
        def alarms(self, reference: str, *, rate: float = 1e-3) -> dict[str, Any]:
            requests.append(reference)
            raise RefusedError(503, "busy")

    id = opened(server)
    with Busy(server.url) as client:
        snapshots = _Follower(client, id).snapshots(every=0.0)
        assert [next(snapshots).round.n for _ in range(3)] == [300] * 3
        assert requests == [id]
        close(server, id)
        assert [snapshot.round.state for snapshot in snapshots] == ["closed"]
    assert requests == [id, id]


def test_whisker_is_to_scale() -> None:
    assert whisker((0.0, 0.5, 1.0), (0.0, 1.0), 11) == "├────●────┤"
    assert whisker((0.2, 0.3, 0.4), (0.0, 1.0), 11, ascii_only=True) == "  |o|      "
    assert whisker((-1.0, 0.0, 3.0), (0.0, 1.0), 5) == "●───┤"
    assert whisker((0.0, 0.0, 0.0), (0.0, 0.0), 3) == "●  "

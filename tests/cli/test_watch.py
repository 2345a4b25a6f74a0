"""A round is followed: a line a change in a pipe, a picture on a terminal, until it is closed or
Ctrl-C.
"""

import contextlib
import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.conftest import ServerProcess
from tests.forked import start_python

from ldprecover import GRR
from ldprecover.protocols.wire import pack
from ldprecover_cli.watch import _Follower, whisker
from ldprecover_client import Client, RefusedError

LABELS = ("red", "green", "blue\u202e")


def opened(server: ServerProcess, reports: int = 300) -> str:
    id: str = server.open_round("grr", 3.0, items=LABELS)["id"]
    if reports:
        fill(server, id, reports)
    return id


def fill(server: ServerProcess, id: str, reports: int) -> None:
    held = np.zeros(reports, np.int64)
    assert (
        server.submit(id, pack(GRR(3.0, 3).perturb(held, np.random.default_rng(3)))).status_code
        == 202
    )


class Watching:
    """`ldprecover watch` in a process of its own, whose standard output is a pipe or a terminal."""

    def __init__(self, url: str, id: str, *, terminal: bool) -> None:
        self._ours, theirs = pty.openpty() if terminal else os.pipe()
        self.text = ""
        self.process = start_python(
            *("-m", "ldprecover_cli", "watch", id, "--every", "0.2"),
            folder=Path.cwd(),
            environment=os.environ
            | {"LDPRECOVER_URL": url, "COLUMNS": "80", "TERM": "xterm", "PYTHONUTF8": "1"},
            stdout=theirs,
        )
        os.close(theirs)

    def until(self, wanted: str) -> str:
        """Read until this has been written, and return all that was."""
        while wanted not in self.text:
            try:
                piece = os.read(self._ours, 65536)
            except OSError:  # a terminal that nobody has open any more
                piece = b""
            assert piece, f"{wanted!r} was not written: {self.text}"
            self.text += piece.decode(errors="replace")
        return self.text

    def ended(self) -> tuple[int, str]:
        """Wait for the end, and return exit code and standard error."""
        _, said = self.process.communicate()
        return self.process.wait(), said

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        os.close(self._ours)


@pytest.fixture
def watching(server: ServerProcess) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:

        def start(id: str, *, terminal: bool = False) -> Watching:
            return stack.enter_context(
                contextlib.closing(Watching(server.url, id, terminal=terminal))
            )

        yield start


def test_a_closed_round_is_one_line(on_server: Run, server: ServerProcess) -> None:
    id = opened(server)
    server.http.post(f"/rounds/{id}/close", headers=server.admin)
    shown = on_server("watch", id, "--top", "1")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("closed, 300 reports, 0 a second; alarms: ")
    assert shown.out.count("\n") == 1
    assert "; red " in shown.out
    assert "blue" not in shown.out


def test_every_change_is_a_line_until_the_round_is_closed(
    server: ServerProcess, watching: Any
) -> None:
    id = opened(server, reports=0)
    watcher = watching(id)
    watcher.until("open, 0 reports, 0 a second\n")
    fill(server, id, 50)
    watcher.until("open, 50 reports")
    watcher.until("blue\N{REPLACEMENT CHARACTER}")
    server.http.post(f"/rounds/{id}/close", headers=server.admin)
    watcher.until("closed, 50 reports")
    assert watcher.ended() == (0, "")


def test_a_terminal_shows_whiskers_and_ctrl_c_ends_it_without_a_word(
    server: ServerProcess, watching: Any
) -> None:
    id = opened(server)
    watcher = watching(id, terminal=True)
    shown = watcher.until("Ctrl-C stops watching")
    assert "300 reports" in shown
    assert "●" in shown
    watcher.process.send_signal(signal.SIGINT)
    assert watcher.ended() == (0, "")


def test_a_round_that_is_deleted_meanwhile_is_an_error(
    server: ServerProcess, watching: Any
) -> None:
    id = opened(server)
    watcher = watching(id)
    watcher.until("300 reports")
    server.http.delete(f"/rounds/{id}", headers=server.admin)
    code, said = watcher.ended()
    assert code == 1
    assert said.startswith("error: no round is called")


def test_a_server_that_goes_away_is_waited_for(start_server: Any, watching: Any) -> None:
    server = start_server()
    server.keep_port()
    id = opened(server)
    watcher = Watching(server.url, id, terminal=False)
    with contextlib.closing(watcher):
        watcher.until("open, 300 reports")
        server.kill()
        watcher.until("does not answer")
        server.start()
        fill(server, id, 1)
        watcher.until("open, 301 reports")


def test_rejected_alarms_are_not_requested_at_every_snapshot(
    server: ServerProcess,
) -> None:
    """They may read every report, of a server that has just said that it is busy."""
    asked: list[str] = []

    class Refused(Client):
        def alarms(self, reference: str, *, rate: float = 1e-3) -> dict[str, Any]:
            asked.append(reference)
            raise RefusedError(503, "busy")

    id = opened(server)
    with Refused(server.url) as client:
        snapshots = _Follower(client, id).snapshots(every=0.0)
        assert [next(snapshots).round.n for _ in range(3)] == [300] * 3
        assert asked == [id]
        server.http.post(f"/rounds/{id}/close", headers=server.admin)
        assert [snapshot.round.state for snapshot in snapshots] == ["closed"]
    assert asked == [id, id], "once more at the end, whenever that is"


@pytest.mark.parametrize("seconds", ["inf", "1e308", "nan", "0.1"])
def test_rejects_interval_out_of_range(on_server: Run, seconds: str) -> None:
    refused = on_server("watch", "--every", seconds)
    assert refused.code == 2
    assert "'--every'" in refused.err


def test_a_whisker_is_drawn_to_scale() -> None:
    assert whisker((0.0, 0.5, 1.0), (0.0, 1.0), 11) == "├────●────┤"
    assert whisker((0.2, 0.3, 0.4), (0.0, 1.0), 11, ascii_only=True) == "  |o|      "
    assert whisker((-1.0, 0.0, 3.0), (0.0, 1.0), 5) == "●───┤"
    assert whisker((0.0, 0.0, 0.0), (0.0, 0.0), 3) == "●  "

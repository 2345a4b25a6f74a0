"""Whatever is killed, and when: an answered report is there, and every report counts once."""

import dataclasses
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.conftest import PACKED, ServerProcess, StartServer, limited
from tests.forked import Process, start_python
from tests.system.conftest import (
    Clients,
    NewClients,
    NewRelay,
    distinct_submissions,
    locked,
    stored_reports,
)

from ldprecover_client import Ledger


def whole_and_once(clients: Clients) -> None:
    """Every submission is counted whole and once, or not at all; segments and counts agree."""
    counts = clients.counts
    assert counts.max() <= 1, "a report was counted twice"
    assert counts.sum() == clients.server.frequencies(clients.round_id)["n"]
    assert all(
        len({int(counts[item]) for item in submission.items}) == 1 for submission in clients.sent
    )
    stored = stored_reports(clients.server, clients.round_id)
    assert np.array_equal(np.bincount(stored, minlength=counts.size), counts)


def test_unanswered_commit_counts_once_when_retried(
    start_server: StartServer, new_relay: NewRelay
) -> None:
    """The server is killed when the answer has left it, and before it arrives."""
    server = start_server()
    id = server.open_round()["id"]
    relay = new_relay(server)
    relay.swallow = "answers"
    post: dict[str, Any] = {
        "url": f"{relay.url}/rounds/{id}/reports",
        "content": b"\1\0\0\0",
        "timeout": 60,
        "trust_env": False,
    }
    headers = PACKED | {"Idempotency-Key": "key"}

    def kill() -> None:
        assert relay.swallowed.wait(60)
        server.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(httpx.TransportError):
        httpx.post(**post, headers=headers)
    killer.join()
    server.start()
    relay.swallow = "nothing"
    assert server.frequencies(id)["counts"] == [0, 1, 0, 0]
    answer = httpx.post(**post, headers=headers)
    assert answer.json() == {"round": id, "accepted": 1, "duplicate": True}
    assert server.frequencies(id)["counts"] == [0, 1, 0, 0]


def test_reports_lost_with_a_killed_server_were_not_answered(
    start_server: StartServer, new_clients: NewClients
) -> None:
    """No commit goes through: the queue holds five, the sixth is rejected, and then the server is
    killed.
    """
    server = start_server(first=limited("QUEUE_REQUESTS", 5))
    clients = new_clients(server, domain_size=100, connections=6)
    with locked(server):
        clients.submit(
            distinct_submissions(6, 100), on_answer=lambda answered: server.signal(signal.SIGKILL)
        )
        assert [answer.status_code for answer in clients.answers.values()] == [503]
        server.kill()
    server.start()
    assert clients.counts.sum() == 0
    again = Clients(server, clients.round_id, connections=3)
    again.submit(clients.sent)
    assert len(again.answered()) == 6
    assert not any(answer.json()["duplicate"] for answer in again.answers.values())
    whole_and_once(clients)


REPORT = """
import sys
from ldprecover_client import Ledger, Reporter
url, round_id, ledger, value = sys.argv[1:]
reporter = Reporter(url, round_id, ledger=Ledger(ledger))
receipts = [reporter.report(value)] if value else reporter.resume()
print([(receipt.state, receipt.resent, receipt.duplicate) for receipt in receipts])
"""


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    """Processes that are gone when the test ends."""
    started: list[Process] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "swallow", ["requests", "answers"], ids=["before it arrives", "after it is counted"]
)
@pytest.mark.parametrize("then", ["oue 3", ""], ids=["reporting again", "resuming"])
def test_client_killed_before_the_answer_sends_the_same_again(
    server: ServerProcess,
    new_relay: NewRelay,
    processes: list[Process],
    tmp_path: Path,
    swallow: str,
    then: str,
) -> None:
    """The user then even gives another value: what was perturbed once is what counts."""
    labels = [f"oue {i}" for i in range(40)]
    id = server.open_round("oue", 1.0, items=labels)["id"]
    relay = new_relay(server)
    ledger = tmp_path / "ledger.sqlite3"

    def client(value: str) -> Process:
        command = ("-c", REPORT, relay.url, id, str(ledger), value)
        processes.append(start_python(*command, folder=tmp_path, environment=os.environ))
        return processes[-1]

    relay.swallow = swallow  # type: ignore[assignment]
    first = client("oue 7")
    assert relay.swallowed.wait(60)
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    counted_before = server.frequencies(id)["n"]
    assert counted_before == (1 if swallow == "answers" else 0)
    (entry,) = Ledger(ledger).entries()
    assert entry.state == "pending"

    relay.swallow = "nothing"
    second = client(then)
    output, _ = second.communicate()
    assert (second.returncode, output.strip()) == (
        0,
        f"[('accepted', True, {swallow == 'answers'})]",
    )
    frequencies = server.frequencies(id)
    assert frequencies["n"] == 1
    bits = np.unpackbits(np.frombuffer(entry.packed, np.uint8), count=40, bitorder="little")
    assert frequencies["counts"] == bits.tolist()
    assert Ledger(ledger).entries() == (dataclasses.replace(entry, state="accepted"),)

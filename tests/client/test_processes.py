"""Reporters in separate processes, killed at every step of a report."""

import os
import queue
import signal
from pathlib import Path
from typing import NoReturn

import pytest
from tests.client.conftest import Collector, Send
from tests.forked import start_python

from ldprecover_client import Ledger, Reporter
from ldprecover_client._httpx import httpx

pytestmark = pytest.mark.usefixtures("forking")

REPORT = """
import os, signal, sys
from ldprecover_client._httpx import httpx
from ldprecover import OLH
from ldprecover_client import AlreadyReportedError, Client, Ledger, Reporter

url, ledger, value, die, *ticket = sys.argv[1:]

def kill_me(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)

class DiesInsteadOfSending(httpx.HTTPTransport):
    def handle_request(self, request):
        if request.method == "POST":
            kill_me()
        return super().handle_request(request)

perturb = OLH.perturb

def counted(self, items, rng=None):
    print("perturbed", flush=True)
    reports = perturb(self, items, rng)
    if die == "while perturbing":
        kill_me()
    return reports

OLH.perturb = counted
transport = DiesInsteadOfSending() if die == "before sending" else None
print("pid", os.getpid(), flush=True)
ticket = ticket[0] if ticket else None
client = Client(url, transport=transport)
reporter = Reporter(client, "r1", ledger=Ledger(ledger), ticket=ticket)
try:
    print(reporter.report(int(value)).state)
except AlreadyReportedError:
    print("already")
"""


def start(url: str, ledger: Path, value, die="never", *ticket: str):
    arguments = (url, str(ledger), str(value), die, *ticket)
    return start_python("-c", REPORT, *arguments, folder=Path.cwd(), environment=os.environ)


@pytest.fixture
def path(tmp_path: Path):
    return tmp_path / "ledger.sqlite3"


@pytest.mark.parametrize("again", ["resume", "report"])
def test_kill_before_send_repeats_bytes(collector: Collector, path: Path, again):
    collector.add()
    with collector.listening() as url:
        child = start(url, path, 0, "before sending")
        output, _ = child.communicate()
        assert child.returncode == -signal.SIGKILL
        assert output.splitlines()[1:] == ["perturbed"]
        assert not collector.posts
        (entry,) = Ledger(path).pending()
        finish(url, path, again)
    assert collector.sent == [(entry.key, entry.packed)]
    assert [entry.state for entry in Ledger(path).entries()] == ["accepted"]


@pytest.mark.parametrize("again", ["resume", "report"])
def test_kill_before_response_repeats_bytes(collector: Collector, path: Path, again):
    collector.add()
    pids: queue.Queue[int] = queue.Queue()

    def kill_the_sender(send: Send) -> NoReturn:
        send()
        os.kill(pids.get(), signal.SIGKILL)
        raise httpx.ReadError("it is dead")

    collector.faults.append(kill_the_sender)
    with collector.listening() as url:
        child = start(url, path, 0)
        pids.put(int(child.stdout.readline().split()[1]))
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        finish(url, path, again)
    assert len(collector.sent) == 2
    assert len(set(collector.sent)) == 1
    assert len(collector.stored) == 1
    assert [entry.state for entry in Ledger(path).entries()] == ["accepted"]


def finish(url: str, path: Path, again) -> None:
    """Restart: resume, or report another value in a new process."""
    if again == "resume":
        (receipt,) = Reporter(url, "r1", ledger=Ledger(path)).resume()
        assert receipt.state == "accepted"
        return
    child = start(url, path, 3)
    output, errors = child.communicate()
    assert not errors
    assert output.splitlines()[1:] == ["accepted"], "nothing is perturbed a second time"


def test_kill_while_perturbing_leaves_nothing(collector: Collector, path: Path):
    collector.add()
    with collector.listening() as url:
        child = start(url, path, 0, "while perturbing")
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        assert not collector.posts
        assert Ledger(path).entries() == ()
        output, _ = start(url, path, 0).communicate()
    assert output.splitlines()[1:] == ["perturbed", "accepted"]

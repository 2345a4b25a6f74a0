"""Interrupted and resumed runs count each report once."""

import json
import stat
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.client.conftest import Collector
from tests.conftest import StartServer

from ldprecover import RoundParameters
from ldprecover_client import (
    ArgumentError,
    Journal,
    JournalError,
    Population,
    Retries,
    UnansweredError,
    submit_reports,
)

N = 950
SIZE = 100


@pytest.fixture
def reports(collector: Collector) -> Any:
    collector.add("grr")
    return RoundParameters("grr", 0.5, collector.ITEMS).oracle.perturb(
        np.arange(N) % 4, np.random.default_rng(1)
    )


@pytest.fixture
def send(collector: Collector, reports: NDArray[Any], tmp_path: Path) -> Any:
    """Send the reports with the existing journal, in order; return the number of accepted ones."""
    path = tmp_path / "runs" / "run.jsonl"

    def call(rows: Any = reports, **options: Any) -> int:
        journal = Journal.open(path) if path.exists() else Journal(path, {"who": "us"})
        transport, at_once = httpx.MockTransport(collector), Retries(attempts=1)
        usual: dict[str, Any] = {
            "batch_size": SIZE,
            "connections": 1,
            "transport": transport,
            "retries": at_once,
        }
        return submit_reports(collector.URL, "r1", rows, journal=journal, **(usual | options))

    call.path = path  # type: ignore[attr-defined]
    return call


def _counted(collector: Collector) -> Any:
    return sum(len(body) // 4 for body in collector.stored.values())


@pytest.mark.parametrize("fault", ["answer_lost", "request_lost"])
@pytest.mark.parametrize("after", [0, 3, 9])
def test_resumed_run_counts_each_report_once(
    collector: Collector, send: Any, fault: Any, after: Any
) -> None:
    collector.faults.extend([lambda go: go()] * after + [getattr(collector, fault)])
    with pytest.raises(UnansweredError):
        send()
    assert _counted(collector) < N or fault == "answer_lost"
    taken = {int(line) for line in send.path.read_text().splitlines()[1:]}
    before = len(collector.posts)
    assert send() == N
    assert _counted(collector) == N
    assert len(collector.posts) - before == 10 - len(taken)
    assert len({key for key, _ in collector.sent}) == 10


def test_progress_resumes(collector: Collector, send: Any) -> None:
    collector.faults.extend([lambda go: go()] * 8 + [collector.request_lost])
    with pytest.raises(UnansweredError) as caught:
        send()
    (note,) = caught.value.__notes__
    updates = []
    send(progress=lambda done, total: updates.append(done))
    assert note == f"{updates[0]} of 950 reports were accepted"
    assert updates[0] >= 800
    assert updates[-1] == N


def test_resumed_run_keeps_size(collector: Collector, send: Any) -> None:
    """Another size would mix counted and new reports in one submission."""
    collector.faults.extend([lambda go: go(), collector.request_lost])
    with pytest.raises(UnansweredError):
        send()
    assert send(batch_size=7) == N
    assert _counted(collector) == N


def test_journal_is_on_disk_before_sending(collector: Collector, send: Any) -> None:
    def look(go: Any) -> Any:
        lines = send.path.read_text().splitlines()
        assert len(lines) == 1
        assert json.loads(lines[0])["facts"] == {"who": "us"}
        assert stat.S_IMODE(send.path.stat().st_mode) == 0o600
        return go()

    collector.faults.append(look)
    assert send() == N


def test_rejects_other_reports(collector: Collector, send: Any, reports: NDArray[Any]) -> None:
    collector.faults.append(collector.request_lost)
    with pytest.raises(UnansweredError):
        send()
    with pytest.raises(ArgumentError, match="not the reports"):
        send(rows=reports[::-1])


def test_ignores_truncated_line(collector: Collector, send: Any) -> None:
    collector.faults.extend([lambda go: go()] * 3 + [collector.request_lost])
    with pytest.raises(UnansweredError):
        send()
    with send.path.open("a") as file:
        file.write("30")  # of "300"
    assert send() == N
    assert _counted(collector) == N


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"form": 1}\n', "\0"])
def test_rejects_file_that_is_no_journal(tmp_path: Path, text: Any) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(JournalError, match=r"x\.jsonl is not the journal of a run"):
        Journal.open(path)


def test_rejects_other_version(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"form": 2}\n')
    with pytest.raises(JournalError, match="another version"):
        Journal.open(path)


def test_unwritable_journal_is_error_before_sending(
    collector: Collector, reports: NDArray[Any], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    journal = Journal(tmp_path / "file" / "run.jsonl", {})
    with pytest.raises(JournalError, match="cannot be written"):
        submit_reports(
            collector.URL, "r1", reports, journal=journal, transport=httpx.MockTransport(collector)
        )
    assert not collector.posts


def test_runs_share_no_key(tmp_path: Path) -> None:
    first, second = (Journal(tmp_path / name, {}) for name in "ab")
    assert len({journal.key(start) for journal in (first, second) for start in range(100)}) == 200


def test_run_survives_repeated_server_kills(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server()
    server.keep_port()
    round_ = server.open_round("olh", 1.0, domain_size=20)
    population = Population([1] * 20, 3_000, 5)
    restarts: list[Any] = []

    def kill_now_and_then(done: Any, total: Any) -> None:
        if done // 1000 > len(restarts):
            restarts.append(done)
            server.restart()

    accepted = population.report_to(
        server.url,
        round_["id"],
        key=server.admin_key,
        batch_size=100,
        progress=kill_now_and_then,
        journal=Journal(tmp_path / "run.jsonl", {}),
        retries=Retries(attempts=1000, base=0.05, longest=0.1),
    )
    assert len(restarts) >= 2
    answer = server.frequencies(round_["id"])
    assert accepted == answer["n"] == 3_000
    oracle = RoundParameters("olh", 1.0, tuple(round_["items"])).oracle
    assert answer["counts"] == oracle.support_counts(population.reports(oracle)).tolist()

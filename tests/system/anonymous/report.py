"""What is measured of a server under attack, and the limits that it must keep."""

from collections import Counter
from dataclasses import dataclass, field
from signal import SIGTERM

import psutil
from tests.system.anonymous.attackers import Attackers

STORED_SECONDS, ANSWERED_SECONDS = 10.0, 4.0
"""Within these an honest submission is stored, and the monitor answered; attackers share the
machine's cores.
"""
WAIT_SECONDS = 15.0
"""How long each of them is tried for."""

MEMORY = 400 << 20
"""Bytes that server, proxy and their child processes may take more than at their start, with the
bodies that the proxy stores.
"""

SHUTDOWN_SECONDS = 1
END_SECONDS = SHUTDOWN_SECONDS + 15.0


@dataclass
class Report:
    """What was seen of a server under attack."""

    submitted: int = 0
    stored_after: list[float] = field(default_factory=list)
    """Seconds that honest submissions took to be stored, retries included."""
    answered_after: list[float] = field(default_factory=list)
    """Seconds that the monitor took to be answered, retries included."""
    probes: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    """Statuses that honest clients and the monitor got."""
    counted: int | None = None
    """Reports in the database after the end."""
    memory_before: int = 0
    memory_peak: int = 0
    exit_status: int | None = None
    left_behind: list[psutil.Process] = field(default_factory=list)
    """Processes that it started and that did not end with it."""
    failures: list[str] = field(default_factory=list)
    """Failures that the server wrote to its log before it was told to stop."""
    attackers: Attackers | None = None


def assert_alive(report: Report) -> None:
    """Assert every promise of a server under attack."""
    stored, answered = report.stored_after, report.answered_after
    assert len(stored) == report.submitted, f"not all stored in {WAIT_SECONDS:g} s: {report}"
    assert len(answered) == report.probes, f"/healthz silent for {WAIT_SECONDS:g} s: {report}"
    assert max(stored, default=0.0) <= STORED_SECONDS, report
    assert max(answered, default=0.0) <= ANSWERED_SECONDS, report
    assert report.counted is not None
    assert len(stored) <= report.counted <= report.submitted, report
    assert report.answers.keys() <= {200, 202, 408, 429, 503}, report
    grown = report.memory_peak - report.memory_before
    assert grown <= MEMORY, f"memory grew by {grown >> 20} MiB: {report}"
    assert report.exit_status == -SIGTERM, f"not so {END_SECONDS:g} s after SIGTERM: {report}"
    assert not report.left_behind, report
    assert not report.failures, report
    assert report.attackers is not None
    assert report.attackers.opened > 0, report
    failed = {status for status in report.attackers.answers if status >= 500}
    assert failed <= {501, 503}, report

"""What is measured of a server under attack, and the limits that it must keep."""

from collections import Counter
from collections.abc import Iterator
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
    exit_seconds: float | None = None
    left_behind: list[psutil.Process] = field(default_factory=list)
    """Processes that it started and that did not end with it."""
    failures: list[str] = field(default_factory=list)
    """Failures that the server wrote to its log before it was told to stop."""
    attackers: Attackers | None = None

    def faults(self) -> list[str]:
        """Return a message for each broken promise."""
        return [fault for holds, fault in self._checks() if not holds]

    def _checks(self) -> Iterator[tuple[bool, str]]:
        stored, answered = self.stored_after, self.answered_after
        lost = self.submitted - len(stored)
        yield (
            lost == 0,
            f"{lost} of {self.submitted} honest submissions were not stored in {WAIT_SECONDS:g} s",
        )
        silent = self.probes - len(answered)
        yield (
            silent == 0,
            f"{silent} of {self.probes} times /healthz did not answer in {WAIT_SECONDS:g} s",
        )
        for seconds, waits, kind in (
            (STORED_SECONDS, stored, "an honest submission"),
            (ANSWERED_SECONDS, answered, "/healthz"),
        ):
            longest = max(waits, default=0.0)
            yield longest <= seconds, f"{kind} took {longest:.1f} s"
        fits = len(stored) <= (self.counted or 0) <= self.submitted
        yield (
            fits,
            (
                f"{self.counted} reports are counted, {len(stored)} were answered, "
                f"{self.submitted} "
                "were sent"
            ),
        )
        bad = {
            status: n
            for status, n in self.answers.items()
            if status not in (200, 202, 408, 429, 503)
        }
        yield not bad, f"honest clients were answered {bad}"
        grown = self.memory_peak - self.memory_before
        yield (
            grown <= MEMORY,
            f"memory grew by {grown >> 20} MiB, from {self.memory_before >> 20} MiB",
        )
        ended = self.exit_seconds is not None
        yield ended, f"the server had not ended {END_SECONDS:g} s after SIGTERM"
        status = self.exit_status
        yield not ended or status == -SIGTERM, f"the server ended with status {status}"
        yield not self.left_behind, f"processes were left behind: {self.left_behind}"
        yield (
            not self.failures,
            f"the server logged {len(self.failures)} failures, first {self.failures[:1]}",
        )
        if (attackers := self.attackers) is not None:
            yield attackers.opened > 0, "the attackers opened no connection"
            failed = {
                status: n
                for status, n in attackers.answers.items()
                if status >= 500 and status not in (501, 503)
            }
            yield not failed, f"attackers were answered {failed}"


def assert_alive(report: Report) -> None:
    """Fail with all that breaks the promise, and what was seen beside."""
    faults = report.faults()
    assert not faults, "\n".join([*faults, f"seen: {report}"])

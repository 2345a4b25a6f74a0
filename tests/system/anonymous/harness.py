"""A server under attack: what honest clients wait, how much memory it takes, and how it ends.

Anonymous callers attack a real server from a separate thread, beside honest reporters and
a monitor.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import httpx
import psutil
import sqlalchemy as sa
from tests.system.anonymous.attackers import Attackers
from tests.system.anonymous.report import END_SECONDS, MEMORY, WAIT_SECONDS, Report
from tests.system.anonymous.target import Target

SECONDS = 1.0
"""How long an attack runs before the honest submissions are waited for; it runs on meanwhile."""

TRY_SECONDS = 2.0
"""How long an honest client waits for an answer before it tries again."""

_TOO_MUCH = 3 * MEMORY  # the siege ends here, for the machine's sake

Attack = Callable[[Attackers], Coroutine[None, None, None]]
"""Attacks until it is cancelled, or returns sooner, when what it did continues by itself."""


def besiege(target: Target, attack: Attack) -> Report:
    """Attack a server while honest clients submit to a round of OLH; stop it under attack.

    Returns what was seen; the server has ended then.
    """
    return _Siege(target, attack).run()


class _Siege:
    def __init__(self, target: Target, attack: Attack) -> None:
        self.server = server = target.server
        self.attack = attack
        self.round = server.open_round("olh", domain_size=16, hash_range=4)["id"]
        self.target = target
        self.http = httpx.AsyncClient(
            base_url=target.proxy.url,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            trust_env=False,
            verify=False,
        )
        self.report = Report(memory_before=target.memory_at_start)
        self.over = threading.Event()  # no further honest submission
        self.ended = threading.Event()

    def run(self) -> Report:
        report, pid = self.report, self.server.pid
        self.server.http.close()  # its kept connections are no part of what is measured
        report.attackers = Attackers(self.target.proxy.host, self.target.proxy.port)
        sampler = threading.Thread(target=self._sample, args=(pid,))
        honest = threading.Thread(target=lambda: asyncio.run(self._honest()))
        with _running(self.attack, report.attackers):
            sampler.start()
            honest.start()
            self.over.wait(SECONDS)  # sooner when memory is gone
            self.over.set()
            honest.join()
            report.failures = self._failures()
            report.attackers.is_server_stopping = True
            self._stop(pid)
            self.ended.set()
            sampler.join()
        self.server.kill()
        report.counted = self._counted()
        return report

    async def _honest(self) -> None:
        """Submit about ten reports a second and look at /healthz four times, each until it is
        answered.
        """
        async with asyncio.TaskGroup() as group:
            tick = 0
            while not self.over.is_set():
                self.report.submitted += 1
                group.create_task(self._until(self._submission(), 202, self.report.stored_after))
                if tick % 3 == 0:
                    self.report.probes += 1
                    probe = {"method": "GET", "url": "/healthz"}
                    group.create_task(self._until(probe, 200, self.report.answered_after))
                tick += 1
                await asyncio.sleep(0.1)

    async def _until(self, request: dict[str, Any], status: int, waits: list[float]) -> None:
        """Send a request, on a new connection each time, until it is answered so."""
        begun = time.monotonic()
        while time.monotonic() - begun < WAIT_SECONDS:
            with contextlib.suppress(httpx.TransportError, TimeoutError):
                async with asyncio.timeout(TRY_SECONDS):
                    answered = (await self.http.request(**request)).status_code
                self.report.answers[answered] += 1
                if answered == status:
                    waits.append(time.monotonic() - begun)
                    return
            await asyncio.sleep(0.1)

    def _submission(self) -> dict[str, Any]:
        """Return a POST of one fresh report, whatever its content, under a fresh key."""
        report = {"seeds": [secrets.randbits(32)], "buckets": [secrets.randbelow(4)]}
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        url = f"/rounds/{self.round}/reports"
        return {"method": "POST", "url": url, "json": report, "headers": headers}

    def _sample(self, pid: int) -> None:
        while not self.ended.wait(0.1):
            self.report.memory_peak = max(self.report.memory_peak, self.target.memory())
            if self.report.memory_peak - self.report.memory_before > _TOO_MUCH:
                self.over.set()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                return

    def _stop(self, pid: int) -> None:
        begun = time.monotonic()
        started: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            started = psutil.Process(pid).children(recursive=True)
        self.server.signal(signal.SIGTERM)
        self.report.exit_status = self.server.exit_status(END_SECONDS)
        _, self.report.left_behind = psutil.wait_procs(
            started, max(0.0, begun + END_SECONDS - time.monotonic())
        )

    def _failures(self) -> list[str]:
        """Return the last line of each traceback in the server's log."""
        failures, inside = [], False
        for line in self.server.log.read_text(errors="replace").splitlines():
            if inside and line[:1].strip():
                failures.append(line)
                inside = False
            inside = inside or line.startswith("Traceback ")
        return failures

    def _counted(self) -> int:
        counted = sa.text(
            "SELECT SUM(n) FROM tallies WHERE round = (SELECT seq FROM rounds WHERE id = :id)"
        )
        with self.server.sql() as database:
            return int(database.scalar(counted, {"id": self.round}) or 0)


@contextlib.contextmanager
def _running(attack: Attack, attackers: Attackers) -> Iterator[None]:
    """Run an attack in a thread; its own failures fail the test."""
    failed: list[BaseException] = []
    loop = asyncio.new_event_loop()

    async def until_cancelled() -> None:
        try:
            await attack(attackers)
            await asyncio.Event().wait()  # what it opened stays open
        finally:
            attackers.close()

    task = loop.create_task(until_cancelled())

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001  raised again below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
    if failed:
        raise failed[0]

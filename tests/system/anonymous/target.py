"""The server that is attacked, with rounds worth attacking."""

import contextlib
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import sqlalchemy as sa
from tests.conftest import ServerProcess
from tests.proxied import Proxy

from ldprecover import frequency_oracle
from ldprecover.protocols import wire
from ldprecover_server.storage.schema import rounds, segments, tallies

WIDE = 100_000
"""The most items that a round may have."""


class Target:
    """A server that has just started; what it stores here, it stores as an operator would
    have it.
    """

    def __init__(self, server: ServerProcess, proxy: Proxy) -> None:
        self.server = server
        self.proxy = proxy
        self.memory_at_start = self.memory()
        self._rng = np.random.default_rng(1)

    def open_round(self, protocol: str, domain_size: int, **fields: Any) -> str:
        """Open a round and return its id."""
        return str(self.server.open_round(protocol, domain_size=domain_size, **fields)["id"])

    def round_of(self, protocol: str, n: int, domain_size: int, submissions: int = 1) -> str:
        """Open a round with n reports in each submission."""
        id = self.open_round(protocol, domain_size)
        oracle = frequency_oracle(protocol, 1.0, domain_size)
        for _ in range(submissions):
            reports = oracle.encode(self._rng.integers(0, domain_size, n), self._rng)
            answer = self.server.submit(id, wire.pack(reports))
            assert answer.status_code == 202, answer.text
        return id

    def round_of_segments(self, n: int) -> str:
        """Open a round with n segments of one GRR report each, as n single commits would have left
        them.
        """
        id = self.open_round("grr", 4)
        items = self._rng.integers(0, 4, n).astype("<u4")
        hour = int(time.time()) // 3600
        with self.server.sql() as database:
            round = database.scalar(sa.select(rounds.c.seq).where(rounds.c.id == id))
            database.execute(
                sa.insert(segments),
                [{"round": round, "hour": hour, "n": 1, "data": item.tobytes()} for item in items],
            )
            counts = np.bincount(items, minlength=4).astype("<u4").tobytes()
            # Of a process that has ended.
            tally = sa.insert(tallies).values(round=round, process=9999, n=n, counts=counts)
            database.execute(tally)
        return id

    def memory(self) -> int:
        """Return the bytes of memory of the server and of the proxy, and of the proxy's files."""
        return memory_of(self.server.pid) + memory_of(self.proxy.pid) + files_of(self.proxy.pid)


def memory_of(pid: int) -> int:
    """Return the bytes of memory of a process and of all that it started, shared pages divided
    among them.
    """
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(OSError):  # it has ended
                match = re.search(
                    r"^Pss:\s+(\d+) kB",
                    Path(f"/proc/{each.pid}/smaps_rollup").read_text(),
                    re.MULTILINE,
                )
                total += int(match[1]) * 1024 if match else 0
    return total


def files_of(pid: int) -> int:
    """Return the bytes on disk of the removed files that a process or its children have open."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(OSError):  # it has ended
                for file in os.scandir(f"/proc/{each.pid}/fd"):
                    with contextlib.suppress(OSError):
                        status = file.stat()
                        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                            total += status.st_blocks * 512
    return total

"""The directory through which the processes of a server share their metrics."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client.multiprocess import mark_process_dead

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable from which prometheus_client takes the directory."""


@contextmanager
def shared_by_processes() -> Iterator[None]:
    """Share metrics between the processes that start inside the `with` block."""
    with TemporaryDirectory(prefix="ldprecover-metrics-", ignore_cleanup_errors=True) as name:
        os.environ[VARIABLE] = name
        try:
            yield
        finally:
            del os.environ[VARIABLE]


def drop_gauges_of_ended_processes() -> None:
    """Delete the live gauges of processes that have ended; their counters stay."""
    for path in Path(os.environ[VARIABLE]).glob("gauge_live*.db"):
        pid = int(path.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid)  # type: ignore[no-untyped-call]

"""Rounds exported as report datasets: processor time, memory and bytes, and the recount beside the
tally.

For each protocol a database is filled with reports over three hours. `ldprecover file dataset`
runs as a separate process; then the dataset is read, and counted. Times are of processors, not of
clocks.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import typer

from ldprecover import RoundParameters, Tally
from ldprecover.protocols import PROTOCOLS
from ldprecover.recovery import ReportSource
from ldprecover_cluster import ReportDataset
from ldprecover_server.ingest.batches import Batch, Submission
from ldprecover_server.storage import Storage

_COMMIT = 20_000  # reports
_HOURS = 3


def main(reports: int = 5_000_000, items: int = 128, protocol: list[str] | None = None) -> None:
    """Print a row for each protocol, all by default; fail where a recount is not the tally."""
    print(f"{reports:,} reports over {items} items; CPU time in µs a report")
    print(
        "protocol  parts  bytes a report  export  peak MiB  of it to start  read  count  recount "
        "= tally"
    )
    start = _peak_of([sys.executable, "-c", "import pyarrow.parquet, ldprecover_cli.serve"])[1]
    differ = 0
    for name in protocol or PROTOCOLS:
        with tempfile.TemporaryDirectory() as folder:
            differ |= not _row(Path(folder), name, reports, items, start)
    sys.exit(differ)


def _row(folder: Path, protocol: str, n: int, d: int, start: float) -> bool:
    url, tally = _filled(folder, RoundParameters(protocol, 1.0, tuple(map(str, range(d)))), n)
    command = [sys.executable, "-m", "ldprecover_cli", "file", "dataset"]
    spent, peak = _peak_of([*command, "--output", str(folder / "round"), "--database-url", url])
    dataset = ReportDataset.open(folder / "round")
    size = sum(path.stat().st_size for path in (folder / "round").rglob("*") if path.is_file())
    began = time.process_time()
    assert sum(len(array) for part in dataset.parts for array in part.arrays()) == n
    read = time.process_time() - began
    began = time.process_time()
    counted = ReportSource.of_parts(dataset.export.parameters.oracle, dataset.parts).tally()
    count = time.process_time() - began
    same = counted == dataset.export.tally == tally
    print(
        f"{protocol:8}  {len(dataset.parts):5}  {size / n:14.2f}  {1e6 * spent / n:6.3f}  "
        f"{peak:8.0f}  {start:14.0f}  "
        f"{1e6 * read / n:4.3f}  {1e6 * count / n:5.3f}  {'yes' if same else 'NO'}",
        flush=True,
    )
    return same


def _filled(folder: Path, parameters: RoundParameters, n: int) -> tuple[str, Tally]:
    """Return the URL of a database with a round of n honest reports, and its tally."""
    oracle, rng, hour = parameters.oracle, np.random.default_rng(1), 470_000
    url = f"sqlite:///{folder / 'ldprecover.db'}"
    with closing(Storage(url, clock=lambda: datetime.fromtimestamp(3600 * hour, UTC))) as storage:
        storage.prepare()
        seq = storage.rounds.open("R1", "r", parameters).seq
        for first in range(0, n, _COMMIT):
            hour = 470_000 + first * _HOURS // n
            users = rng.integers(0, oracle.domain_size, min(_COMMIT, n - first))
            packed = oracle.perturb(users, rng).tobytes()
            batch = Batch(seq, [Submission(seq, oracle, str(first), packed)])
            batch.count()
            storage.commit([batch])
        return url, storage.rounds.tally(seq, oracle.summary_size)


def _peak_of(command: list[str]) -> tuple[float, float]:
    """Run a command; return its processor seconds and its peak memory in MiB."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return used.ru_utime + used.ru_stime, used.ru_maxrss * unit / (1 << 20)


if __name__ == "__main__":
    typer.run(main)

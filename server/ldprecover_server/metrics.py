"""What the server counts for its operator, in Prometheus' terms: one table, and the values behind it.

Nothing here knows a round: labels of rounds would grow without end. `GET /rounds/{id}/stats` has
what is counted by round.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["MANIFEST", "MEDIA_TYPE", "Metric", "Metrics", "shared_by_processes"]

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_SHARED = "PROMETHEUS_MULTIPROC_DIR"  # what prometheus-client looks for

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_ANALYSIS_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


@dataclass(frozen=True)
class Metric:
    """One metric: its name as Prometheus shows it, its kind, its labels, and what it says."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


MANIFEST = (
    Metric(
        "ldprecover_requests_total",
        "counter",
        "Requests answered, by method, template of the route (none where no route took the request) and status.",
        ("method", "route", "code"),
    ),
    Metric("ldprecover_submissions_total", "counter", "Submissions stored and counted, durably."),
    Metric("ldprecover_reports_total", "counter", "Reports in those submissions."),
    Metric("ldprecover_duplicates_total", "counter", "Submissions that had been stored before: retries."),
    Metric(
        "ldprecover_refusals_total",
        "counter",
        "Requests answered with a problem, by its type: a heading of the errors page.",
        ("reason",),
    ),
    Metric("ldprecover_queue_submissions", "gauge", "Submissions that wait for their commit, once a commit."),
    Metric(
        "ldprecover_commit_submissions",
        "histogram",
        "Submissions in one commit.",
        buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    ),
    Metric(
        "ldprecover_commit_seconds", "histogram", "Time of one commit, with the times it ran again.", buckets=_SECONDS
    ),
    Metric(
        "ldprecover_counting_seconds",
        "histogram",
        "Time to count the support of one commit's reports.",
        buckets=_SECONDS,
    ),
    Metric("ldprecover_analyses_running", "gauge", "Analyses that child processes work on."),
    Metric("ldprecover_analyses_waiting", "gauge", "Analyses that wait for a child process."),
    Metric(
        "ldprecover_analysis_seconds",
        "histogram",
        "Time that a child process worked on one analysis, also where it was given up.",
        buckets=_ANALYSIS_SECONDS,
    ),
    Metric("ldprecover_pool_connections", "gauge", "Connections to the database that are in use."),
)
"""Every metric there is; the page about metrics is made from it."""


class Metrics:
    """The values of one process, or, where `shared_by_processes` holds, its share of all."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        made: dict[str, Any] = {metric.name: _make(metric, self._registry) for metric in MANIFEST}
        self.requests: Counter = made["ldprecover_requests_total"]
        self.submissions: Counter = made["ldprecover_submissions_total"]
        self.reports: Counter = made["ldprecover_reports_total"]
        self.duplicates: Counter = made["ldprecover_duplicates_total"]
        self.refusals: Counter = made["ldprecover_refusals_total"]
        self.queue: Gauge = made["ldprecover_queue_submissions"]
        self.commit_submissions: Histogram = made["ldprecover_commit_submissions"]
        self.commit_seconds: Histogram = made["ldprecover_commit_seconds"]
        self.counting_seconds: Histogram = made["ldprecover_counting_seconds"]
        self.analyses_running: Gauge = made["ldprecover_analyses_running"]
        self.analyses_waiting: Gauge = made["ldprecover_analyses_waiting"]
        self.analysis_seconds: Histogram = made["ldprecover_analysis_seconds"]
        self.pool: Gauge = made["ldprecover_pool_connections"]

    def render(self) -> bytes:
        """Return the text that Prometheus reads: of all processes of this server, whichever is asked."""
        if _SHARED not in os.environ:
            return generate_latest(self._registry)
        _forget_the_dead(Path(os.environ[_SHARED]))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


@contextmanager
def shared_by_processes() -> Iterator[None]:
    """Make the processes started inside add their values up, in files of a folder of their own."""
    with TemporaryDirectory(prefix="ldprecover-metrics-") as folder:
        os.environ[_SHARED] = folder
        try:
            yield
        finally:
            del os.environ[_SHARED]


def _forget_the_dead(folder: Path) -> None:
    """Drop the gauges of processes that are gone; what they counted stays counted."""
    for path in folder.glob("gauge_live*.db"):
        try:
            os.kill(int(path.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)


def _make(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if metric.kind == "counter":
        return Counter(metric.name, metric.help, metric.labels, registry=registry)
    if metric.kind == "gauge":
        return Gauge(metric.name, metric.help, metric.labels, registry=registry, multiprocess_mode="livesum")
    return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets)

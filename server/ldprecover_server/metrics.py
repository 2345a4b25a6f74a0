"""What the server counts for its operator, in Prometheus' terms: one table, and the values behind
it.

Nothing here knows a round: labels of rounds would grow without end. `GET /rounds/{id}/stats` has
what is counted by round.
"""

import fcntl
import os
import shutil
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from threading import Lock
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_SHARED = "PROMETHEUS_MULTIPROC_DIR"  # what prometheus-client looks for
_FOLDER = "ldprecover-metrics-"

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
    over_processes: Literal["livesum", "livemostrecent", "max"] = "livesum"
    """What several processes make of a gauge: `live` leaves out those that are gone."""


MANIFEST = (
    Metric(
        "ldprecover_requests_total",
        "counter",
        "Requests answered, by method, template of the route (none where no route took the "
        "request) and status.",
        ("method", "route", "code"),
    ),
    Metric(
        "ldprecover_request_seconds",
        "histogram",
        "Time from a request's head to the end of its answer, by method and route; of a "
        "submission, its body and its "
        "commit are in it.",
        ("method", "route"),
        buckets=_SECONDS,
    ),
    Metric("ldprecover_submissions_total", "counter", "Submissions stored and counted, durably."),
    Metric("ldprecover_reports_total", "counter", "Reports in those submissions."),
    Metric(
        "ldprecover_quarantined_reports_total",
        "counter",
        "Reports set aside, by the reason: their size, when they came, or their seed, once their "
        "round was closed.",
        ("reason",),
    ),
    Metric(
        "ldprecover_duplicates_total",
        "counter",
        "Submissions that had been stored before: retries.",
    ),
    Metric(
        "ldprecover_refusals_total",
        "counter",
        "Requests answered with a problem, by its type: a heading of the errors page.",
        ("reason",),
    ),
    Metric(
        "ldprecover_queue_submissions",
        "gauge",
        "Submissions that wait for their commit, once a commit.",
    ),
    Metric(
        "ldprecover_commit_submissions",
        "histogram",
        "Submissions in one commit.",
        buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    ),
    Metric(
        "ldprecover_commit_seconds",
        "histogram",
        "Time of one commit, with the times it ran again.",
        buckets=_SECONDS,
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
    Metric(
        "ldprecover_pool_connections",
        "gauge",
        "Connections to the database that are in use; the writer keeps one.",
    ),
    Metric("ldprecover_connections", "gauge", "Connections of clients that are open."),
    Metric(
        "ldprecover_connections_evicted_total",
        "counter",
        "Connections of clients that were closed to make room for others.",
    ),
    Metric(
        "ldprecover_jobs_total",
        "counter",
        "Analyses in the background that ended, by their state: done, or failed, which those "
        "cancelled count as.",
        ("state",),
    ),
    Metric(
        "ldprecover_last_housekeeping_timestamp_seconds",
        "gauge",
        "When any process last finished its housekeeping, in seconds since 1970; it does so every "
        "10 seconds.",
        over_processes="max",
    ),
    Metric(
        "ldprecover_last_purge_timestamp_seconds",
        "gauge",
        "When any process last purged what is past its retention, in seconds since 1970; it does "
        "so every hour.",
        over_processes="max",
    ),
    Metric(
        "ldprecover_rows_to_delete",
        "gauge",
        "Rows of deleted rounds and purged reports that the database still holds, as last counted.",
        over_processes="livemostrecent",
    ),
)
"""Every metric there is; the page about metrics is made from it."""


class Metrics:
    """The values of one process, or, where `shared_by_processes` holds, its share of all."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        made: dict[str, Any] = {metric.name: _make(metric, self._registry) for metric in MANIFEST}
        self.requests = Requests(
            made["ldprecover_requests_total"], made["ldprecover_request_seconds"]
        )
        self.submissions: Counter = made["ldprecover_submissions_total"]
        self.reports: Counter = made["ldprecover_reports_total"]
        self.quarantined: Counter = made["ldprecover_quarantined_reports_total"]
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
        self.connections: Gauge = made["ldprecover_connections"]
        self.connections_evicted: Counter = made["ldprecover_connections_evicted_total"]
        self.jobs: Counter = made["ldprecover_jobs_total"]
        self.last_housekeeping: Gauge = made["ldprecover_last_housekeeping_timestamp_seconds"]
        self.last_purge: Gauge = made["ldprecover_last_purge_timestamp_seconds"]
        self.rows_to_delete: Gauge = made["ldprecover_rows_to_delete"]

    def render(self) -> bytes:
        """Return the text that Prometheus reads: of all processes of this server, whichever is
        asked.
        """
        self.requests.publish()
        if _SHARED not in os.environ:
            return generate_latest(self._registry)
        _forget_the_dead(Path(os.environ[_SHARED]))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


class Requests:
    """Requests by method, route and status, in plain numbers until they are published.

    A metric that processes share costs about a microsecond a change, and a request changes three:
    more than all else that is done around it. `count` is for one thread, `publish` for any.
    """

    def __init__(self, total: Counter, seconds: Histogram) -> None:
        self._total = total
        self._seconds = seconds
        self._kinds: dict[tuple[str, str, int], _Kind] = {}
        self._publishing = Lock()

    def count(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count one request and how long it took."""
        kind = self._kinds.get((method, route, code))
        if kind is None:
            total, times = (
                self._total.labels(method, route, str(code)),
                self._seconds.labels(method, route),
            )
            kind = self._kinds[method, route, code] = _Kind(total, times)
        kind.seconds += seconds
        kind.buckets[bisect_left(_SECONDS, seconds)] += 1

    def publish(self) -> None:
        """Add what was counted since the last time to the metrics."""
        with self._publishing:
            for kind in tuple(self._kinds.values()):
                kind.publish()


class _Kind:
    """One kind of request: what was counted, which only grows, and how much of it is published."""

    def __init__(self, total: Counter, times: Histogram) -> None:
        self.seconds = 0.0
        self.buckets = [0] * (len(_SECONDS) + 1)
        self._total = total
        self._times = times
        self._published_seconds = 0.0
        self._published = self.buckets.copy()

    def publish(self) -> None:
        seconds, buckets = self.seconds, self.buckets.copy()
        new = [now - before for now, before in zip(buckets, self._published, strict=True)]
        if not any(new):
            return
        self._total.inc(sum(new))
        # The library has no call for many observations at once.
        self._times._sum.inc(seconds - self._published_seconds)
        for bucket, times in zip(self._times._buckets, new, strict=True):
            if times:
                bucket.inc(times)
        self._published_seconds, self._published = seconds, buckets


@contextmanager
def shared_by_processes() -> Iterator[None]:
    """Make the processes started inside add their values up, in files of a folder of their own.

    Folders of those who were killed meanwhile are removed.
    """
    for left in Path(gettempdir()).glob(f"{_FOLDER}*"):
        with _locked(left) as is_ours:
            if is_ours:
                shutil.rmtree(left, ignore_errors=True)
    with _own_folder() as folder:
        os.environ[_SHARED] = folder
        try:
            yield
        finally:
            del os.environ[_SHARED]


@contextmanager
def _own_folder() -> Iterator[str]:
    while True:
        with (
            TemporaryDirectory(prefix=_FOLDER, ignore_cleanup_errors=True) as folder,
            _locked(Path(folder)) as is_ours,
        ):
            if (
                is_ours and Path(folder).exists()
            ):  # else another who starts has taken it for one that was left
                yield folder
                return


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock a folder, and tell whether it is this user's and nobody else's who lives. The lock ends
    with its process.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = os.fstat(handle).st_uid == os.geteuid()
    except OSError:
        is_ours = False
    try:
        yield is_ours
    finally:
        os.close(handle)


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
        mode = metric.over_processes
        return Gauge(
            metric.name, metric.help, metric.labels, registry=registry, multiprocess_mode=mode
        )
    return Histogram(
        metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets
    )

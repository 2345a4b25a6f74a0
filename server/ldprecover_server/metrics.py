"""Metrics for Prometheus, and their sharing between the processes of a server.

None has a label for the round: its values would grow without limit.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_ANALYSIS_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)

_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable from which prometheus_client takes the directory."""

M = TypeVar("M", Counter, Gauge, Histogram)


class Metric(NamedTuple):
    """What the reference page says of a metric: its name in Prometheus, kind, help and labels."""

    name: str
    kind: str
    help: str
    labels: Sequence[str]


class Metrics:
    """The values of one process; inside `shared_by_processes` its part of the values of all."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.manifest: list[Metric] = []
        """All metrics; the reference page is generated from this table."""
        counter = partial(self._new, Counter)
        # `live` leaves out ended processes.
        gauge = partial(self._new, Gauge, multiprocess_mode="livesum")
        histogram = partial(self._new, Histogram, buckets=_SECONDS)
        self.requests = counter(
            "ldprecover_requests_total",
            "Requests by method, path template of the route (none without a route) and status.",
            ("method", "route", "code"),
        )
        self.request_seconds = histogram(
            "ldprecover_request_seconds",
            "Time from the head of a request to the end of its response, by method and "
            "route; for a submission it includes the body and the commit.",
            ("method", "route"),
        )
        self.submissions = counter("ldprecover_submissions_total", "Submissions committed.")
        self.reports = counter("ldprecover_reports_total", "Reports in those submissions.")
        self.duplicates = counter(
            "ldprecover_duplicates_total", "Submissions that were already stored: retries."
        )
        self.refusals = counter(
            "ldprecover_refusals_total",
            "Requests answered with a problem, by its type, which is a heading of the errors page.",
            ("reason",),
        )
        self.queue = gauge(
            "ldprecover_queue_submissions",
            "Submissions that wait for their commit, measured at each commit.",
        )
        self.commit_submissions = histogram(
            "ldprecover_commit_submissions",
            "Submissions in one commit.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
        )
        self.commit_seconds = histogram(
            "ldprecover_commit_seconds", "Time of one commit, including its retries."
        )
        self.counting_seconds = histogram(
            "ldprecover_counting_seconds", "Time to count the support of one commit's reports."
        )
        self.analyses_running = gauge(
            "ldprecover_analyses_running", "Analyses that run in worker processes."
        )
        self.analyses_waiting = gauge(
            "ldprecover_analyses_waiting", "Analyses that wait for a worker process."
        )
        self.analysis_seconds = histogram(
            "ldprecover_analysis_seconds",
            "Time that a worker process spent on one analysis, including those that were "
            "cancelled.",
            buckets=_ANALYSIS_SECONDS,
        )
        self.pool = gauge(
            "ldprecover_pool_connections",
            "Connections to the database in use; the writer keeps one.",
        )
        self.verdicts = counter(
            "ldprecover_verdicts_total",
            "Verdicts by outcome: kept, or failed, because of an error or a limit of time, memory "
            "or disk.",
            ("outcome",),
        )
        counted = partial(gauge, multiprocess_mode="livemostrecent")
        self.open_rounds = counted(
            "ldprecover_open_rounds",
            "Open rounds by their verdict, counted every 10 seconds; near_certain_once until the "
            "next verdict says so too.",
            ("verdict",),
        )
        self.current_reports = counted(
            "ldprecover_current_round_reports",
            "Reports of the current round, counted every 10 seconds; 0 without one.",
        )
        self.last_housekeeping = gauge(
            "ldprecover_last_housekeeping_timestamp_seconds",
            "Time at which any process last finished its housekeeping, in seconds since 1970; it"
            " runs every 10 seconds.",
            multiprocess_mode="max",
        )
        self.rows_to_delete = counted(
            "ldprecover_rows_to_delete",
            "Rows of deleted rounds still in the database, as last counted.",
        )

    def _new(
        self, kind: type[M], name: str, help: str, labels: Sequence[str] = (), **options: Any
    ) -> M:
        self.manifest.append(Metric(name, kind.__name__.lower(), help, labels))
        return kind(name, help, labels, registry=self._registry, **options)

    def of_requests(self, method: str, route: str, code: int) -> tuple[Counter, Histogram]:
        """Return the counter and the histogram of such requests."""
        return (
            self.requests.labels(method, route, str(code)),
            self.request_seconds.labels(method, route),
        )

    def render(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        if _VARIABLE not in os.environ:
            return generate_latest(self._registry)
        _drop_gauges_of_ended_processes()
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


@contextmanager
def shared_by_processes() -> Iterator[None]:
    """Share metrics between the processes that start inside the `with` block."""
    with TemporaryDirectory(prefix="ldprecover-metrics-", ignore_cleanup_errors=True) as name:
        os.environ[_VARIABLE] = name
        try:
            yield
        finally:
            del os.environ[_VARIABLE]


def _drop_gauges_of_ended_processes() -> None:
    """Delete the live gauges of processes that have ended; their counters stay."""
    for path in Path(os.environ[_VARIABLE]).glob("gauge_live*.db"):
        pid = int(path.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid)  # type: ignore[no-untyped-call]

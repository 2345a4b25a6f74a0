"""The values of the metrics."""

from bisect import bisect_left
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

from ldprecover_server.metrics.shared import drop_gauges_of_ended_processes, shared_folder
from ldprecover_server.metrics.table import MANIFEST, SECONDS, Metric

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """The values of one process; inside `shared_by_processes` its part of the values of all."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        values: dict[str, Any] = {each.name: _create(each, self._registry) for each in MANIFEST}
        self.requests = Requests(
            values["ldprecover_requests_total"], values["ldprecover_request_seconds"]
        )
        self.submissions: Counter = values["ldprecover_submissions_total"]
        self.reports: Counter = values["ldprecover_reports_total"]
        self.duplicates: Counter = values["ldprecover_duplicates_total"]
        self.refusals: Counter = values["ldprecover_refusals_total"]
        self.queue: Gauge = values["ldprecover_queue_submissions"]
        self.commit_submissions: Histogram = values["ldprecover_commit_submissions"]
        self.commit_seconds: Histogram = values["ldprecover_commit_seconds"]
        self.counting_seconds: Histogram = values["ldprecover_counting_seconds"]
        self.analyses_running: Gauge = values["ldprecover_analyses_running"]
        self.analyses_waiting: Gauge = values["ldprecover_analyses_waiting"]
        self.analysis_seconds: Histogram = values["ldprecover_analysis_seconds"]
        self.pool: Gauge = values["ldprecover_pool_connections"]
        self.connections: Gauge = values["ldprecover_connections"]
        self.connections_evicted: Counter = values["ldprecover_connections_evicted_total"]
        self.verdicts: Counter = values["ldprecover_verdicts_total"]
        self.last_housekeeping: Gauge = values["ldprecover_last_housekeeping_timestamp_seconds"]
        self.last_purge: Gauge = values["ldprecover_last_purge_timestamp_seconds"]
        self.rows_to_delete: Gauge = values["ldprecover_rows_to_delete"]

    def render(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        self.requests.publish()
        folder = shared_folder()
        if folder is None:
            return generate_latest(self._registry)
        drop_gauges_of_ended_processes(folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


class Requests:
    """Requests by method, route and status, as plain numbers until they are published.

    A shared metric costs about 1 µs per change, and a request changes three: more than the rest of
    its instrumentation. Call `count` from one thread, `publish` from any.
    """

    def __init__(self, total: Counter, seconds: Histogram) -> None:
        self._total = total
        self._seconds = seconds
        self._counts: dict[tuple[str, str, int], _Count] = {}
        self._publishing = Lock()

    def count(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count one request and its duration."""
        count = self._counts.get((method, route, code))
        if count is None:
            total = self._total.labels(method, route, str(code))
            times = self._seconds.labels(method, route)
            count = self._counts[method, route, code] = _Count(total, times)
        count.seconds += seconds
        count.buckets[bisect_left(SECONDS, seconds)] += 1

    def publish(self) -> None:
        """Add the counts since the last call to the metrics."""
        with self._publishing:
            for count in tuple(self._counts.values()):
                count.publish()


class _Count:
    """The counts for one method, route and status: all of them, and the published ones."""

    def __init__(self, total: Counter, times: Histogram) -> None:
        self.seconds = 0.0
        self.buckets = [0] * (len(SECONDS) + 1)
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
        # The library has no public call that adds many observations.
        self._times._sum.inc(seconds - self._published_seconds)
        for bucket, times in zip(self._times._buckets, new, strict=True):
            if times:
                bucket.inc(times)
        self._published_seconds, self._published = seconds, buckets


def _create(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
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

"""The values of the metrics."""

import os
from bisect import bisect_left
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

from ldprecover_server.metrics.shared import VARIABLE, drop_gauges_of_ended_processes
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
        self.verdicts: Counter = values["ldprecover_verdicts_total"]
        self.last_housekeeping: Gauge = values["ldprecover_last_housekeeping_timestamp_seconds"]
        self.rows_to_delete: Gauge = values["ldprecover_rows_to_delete"]

    def render(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        if VARIABLE not in os.environ:
            return generate_latest(self._registry)
        drop_gauges_of_ended_processes()
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


class Requests:
    """Requests by method, route and status, as plain numbers until they are published.

    The metrics take 2 µs for a request, of several processes 6 µs, a twentieth of the time of a
    submission; these numbers take 0.3 µs. For use in one event loop.
    """

    def __init__(self, total: Counter, seconds: Histogram) -> None:
        self._total = total
        self._seconds = seconds
        self._counts: dict[tuple[str, str, int], _Count] = {}

    def count(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count one request and its duration."""
        count = self._counts.get((method, route, code))
        if count is None:
            count = self._counts[method, route, code] = _Count()
        count.seconds += seconds
        count.buckets[bisect_left(SECONDS, seconds)] += 1

    def publish(self) -> None:
        """Add the counts since the last call to the metrics."""
        counts, self._counts = self._counts, {}
        for (method, route, code), count in counts.items():
            self._total.labels(method, route, str(code)).inc(sum(count.buckets))
            times = self._seconds.labels(method, route)
            # The library has no public call that adds many observations.
            times._sum.inc(count.seconds)
            for bucket, number in zip(times._buckets, count.buckets, strict=True):
                if number:
                    bucket.inc(number)


class _Count:
    """The requests of one method, route and status: their seconds, and their number by bucket."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.buckets = [0] * (len(SECONDS) + 1)


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

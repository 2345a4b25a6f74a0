"""The table of all metrics. None has a label for the round: its values would grow without limit."""

from dataclasses import dataclass
from typing import Literal

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_ANALYSIS_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


@dataclass(frozen=True)
class Metric:
    """A metric: its name in Prometheus, its kind, its help text and its labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    over_processes: Literal["livesum", "livemostrecent", "max"] = "livesum"
    """How the gauges of several processes become one; `live` leaves out ended processes."""


MANIFEST = (
    Metric(
        "ldprecover_requests_total",
        "counter",
        "Requests by method, path template of the route (none without a route) and status.",
        ("method", "route", "code"),
    ),
    Metric(
        "ldprecover_request_seconds",
        "histogram",
        "Time from the head of a request to the end of its response, by method and route; for a "
        "submission it includes the body and the commit.",
        ("method", "route"),
        buckets=SECONDS,
    ),
    Metric("ldprecover_submissions_total", "counter", "Submissions committed."),
    Metric("ldprecover_reports_total", "counter", "Reports in those submissions."),
    Metric(
        "ldprecover_duplicates_total", "counter", "Submissions that were already stored: retries."
    ),
    Metric(
        "ldprecover_refusals_total",
        "counter",
        "Requests answered with a problem, by its type, which is a heading of the errors page.",
        ("reason",),
    ),
    Metric(
        "ldprecover_queue_submissions",
        "gauge",
        "Submissions that wait for their commit, measured at each commit.",
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
        "Time of one commit, including its retries.",
        buckets=SECONDS,
    ),
    Metric(
        "ldprecover_counting_seconds",
        "histogram",
        "Time to count the support of one commit's reports.",
        buckets=SECONDS,
    ),
    Metric("ldprecover_analyses_running", "gauge", "Analyses that run in worker processes."),
    Metric("ldprecover_analyses_waiting", "gauge", "Analyses that wait for a worker process."),
    Metric(
        "ldprecover_analysis_seconds",
        "histogram",
        "Time that a worker process spent on one analysis, including those that were cancelled.",
        buckets=_ANALYSIS_SECONDS,
    ),
    Metric(
        "ldprecover_pool_connections",
        "gauge",
        "Connections to the database in use; the writer keeps one.",
    ),
    Metric(
        "ldprecover_verdicts_total",
        "counter",
        "Verdicts on closed rounds by outcome: kept, or failed, because of an error or a limit of "
        "time, memory or disk.",
        ("outcome",),
    ),
    Metric(
        "ldprecover_last_housekeeping_timestamp_seconds",
        "gauge",
        "Time at which any process last finished its housekeeping, in seconds since 1970; it runs "
        "every 10 seconds.",
        over_processes="max",
    ),
    Metric(
        "ldprecover_rows_to_delete",
        "gauge",
        "Rows of deleted rounds still in the database, as last counted.",
        over_processes="livemostrecent",
    ),
)
"""All metrics; the reference page is generated from this table."""

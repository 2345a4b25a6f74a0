"""Metrics for Prometheus: their table, their values, and sharing between processes."""

from ldprecover_server.metrics.shared import shared_by_processes
from ldprecover_server.metrics.table import MANIFEST, Metric
from ldprecover_server.metrics.values import MEDIA_TYPE, Metrics, Requests

__all__ = ["MANIFEST", "MEDIA_TYPE", "Metric", "Metrics", "Requests", "shared_by_processes"]

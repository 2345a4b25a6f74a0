"""A round as data in a folder, and the engines that read it: this process, others, or other machines."""

from ldprecover_cluster.errors import EngineError, ReportDatasetError

__all__ = ["EngineError", "ReportDatasetError"]

"""Rounds as Parquet datasets, and recoveries over their reports here or on a Dask cluster."""

from ldprecover_cluster.dataset import ReportDataset, write_dataset
from ldprecover_cluster.errors import EngineError, ReportDatasetError
from ldprecover_cluster.source import DatasetSource, connect

__all__ = [
    "DatasetSource",
    "EngineError",
    "ReportDataset",
    "ReportDatasetError",
    "connect",
    "write_dataset",
]

"""Rounds as Parquet datasets, and executors that read them: processes or a Dask cluster."""

from ldprecover_cluster.dataset import ReportDataset
from ldprecover_cluster.engines import engine
from ldprecover_cluster.errors import EngineError, ReportDatasetError
from ldprecover_cluster.memory_part import InMemoryPart
from ldprecover_cluster.parts import ParquetPart
from ldprecover_cluster.purge import purge
from ldprecover_cluster.scheduler import Scheduler
from ldprecover_cluster.writer import DatasetWriter, write_dataset

__all__ = [
    "DatasetWriter",
    "EngineError",
    "InMemoryPart",
    "ParquetPart",
    "ReportDataset",
    "ReportDatasetError",
    "Scheduler",
    "engine",
    "purge",
    "write_dataset",
]

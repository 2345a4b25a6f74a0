"""A round as data in a folder, and the engines that read it: this process, others, or other
machines.
"""

from ldprecover_cluster.carried import CarriedPart
from ldprecover_cluster.dataset import ReportDataset
from ldprecover_cluster.engines import engine
from ldprecover_cluster.errors import EngineError, ReportDatasetError
from ldprecover_cluster.parts import ParquetPart
from ldprecover_cluster.purging import purge
from ldprecover_cluster.scheduler import Scheduler
from ldprecover_cluster.writing import DatasetWriter, write_dataset

__all__ = [
    "CarriedPart",
    "DatasetWriter",
    "EngineError",
    "ParquetPart",
    "ReportDataset",
    "ReportDatasetError",
    "Scheduler",
    "engine",
    "purge",
    "write_dataset",
]

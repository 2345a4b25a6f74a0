"""A round as data in a folder, and the engines that read it: this process, others, or other machines."""

from ldprecover_cluster.carried import CarriedPart
from ldprecover_cluster.engines import engine
from ldprecover_cluster.errors import EngineError, ReportDatasetError
from ldprecover_cluster.scheduler import Scheduler

__all__ = ["CarriedPart", "EngineError", "ReportDatasetError", "Scheduler", "engine"]

"""What the service keeps, behind one small interface."""

from ldprecover_server.storage.commit.transaction import Batch, Outcome, Sealed
from ldprecover_server.storage.datasets import StoredDataset
from ldprecover_server.storage.maintenance.check import Finding
from ldprecover_server.storage.maintenance.deletion import Progress, for_seconds
from ldprecover_server.storage.maintenance.filters import QuarantinedReports
from ldprecover_server.storage.rounds import CURRENT, StoredRound, Unread
from ldprecover_server.storage.segments import StoredReports
from ldprecover_server.storage.snapshots import Snapshot
from ldprecover_server.storage.storage import Store

__all__ = [
    "CURRENT",
    "Batch",
    "Finding",
    "Outcome",
    "Progress",
    "QuarantinedReports",
    "Sealed",
    "Snapshot",
    "Store",
    "StoredDataset",
    "StoredReports",
    "StoredRound",
    "Unread",
    "for_seconds",
]

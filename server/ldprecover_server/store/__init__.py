"""What the service keeps, behind one small interface."""

from ldprecover_server.store.checking import Finding
from ldprecover_server.store.commit import Batch, Outcome, Sealed
from ldprecover_server.store.datasets import StoredDataset
from ldprecover_server.store.deletion import Progress, for_seconds
from ldprecover_server.store.rounds import CURRENT, StoredRound, Unread
from ldprecover_server.store.screening import SetAside
from ldprecover_server.store.segments import StoredReports
from ldprecover_server.store.snapshots import Snapshot
from ldprecover_server.store.store import Store

__all__ = [
    "CURRENT",
    "Batch",
    "Finding",
    "Outcome",
    "Progress",
    "Sealed",
    "SetAside",
    "Snapshot",
    "Store",
    "StoredDataset",
    "StoredReports",
    "StoredRound",
    "Unread",
    "for_seconds",
]

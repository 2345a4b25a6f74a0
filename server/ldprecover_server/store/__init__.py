"""What the service keeps, behind one small interface."""

from ldprecover_server.store.commit import Batch, Outcome, Sealed
from ldprecover_server.store.reports import StoredReports
from ldprecover_server.store.store import CURRENT, Store, StoredRound

__all__ = ["CURRENT", "Batch", "Outcome", "Sealed", "Store", "StoredReports", "StoredRound"]

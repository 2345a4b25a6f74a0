"""Everything the service stores, in SQLite or Postgres, behind one `Storage`."""

from ldprecover_server.storage.acts import Act
from ldprecover_server.storage.commit import Batch, Outcome
from ldprecover_server.storage.keys import AccessKey, HashedKey
from ldprecover_server.storage.maintenance.check import Finding
from ldprecover_server.storage.maintenance.chunks import for_seconds
from ldprecover_server.storage.rounds import CURRENT, StoredRound, decode_labels, new_id
from ldprecover_server.storage.segments import StoredReports
from ldprecover_server.storage.series import Member
from ldprecover_server.storage.storage import Storage
from ldprecover_server.storage.verdicts import ATTACKS, NEAR_CERTAIN, ONCE

__all__ = [
    "ATTACKS",
    "CURRENT",
    "NEAR_CERTAIN",
    "ONCE",
    "AccessKey",
    "Act",
    "Batch",
    "Finding",
    "HashedKey",
    "Member",
    "Outcome",
    "Storage",
    "StoredReports",
    "StoredRound",
    "decode_labels",
    "for_seconds",
    "new_id",
]

"""What the server does, without HTTP and without SQL."""

import contextlib
import logging
import math
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from ldprecover import FrequencyOracle, ParameterError, RoundParameters, Tally
from ldprecover_server import keys
from ldprecover_server.access.access import Access
from ldprecover_server.access.rates import ReportLimits
from ldprecover_server.errors import (
    QueueFullError,
    RoundNotFoundError,
    ServiceError,
    StorageFullError,
)
from ldprecover_server.ingest import Ingest, Submission
from ldprecover_server.metrics import Metrics
from ldprecover_server.refusals import Refusals
from ldprecover_server.settings import Settings
from ldprecover_server.store import Store, StoredRound

__all__ = ["OpenRound", "Service"]

_log = logging.getLogger(__name__)

_CACHED_ROUNDS = 256


@dataclass(frozen=True)
class OpenRound:
    """What the ingest path needs of a round; none of it ever changes."""

    seq: int
    id: str
    parameters: RoundParameters
    oracle: FrequencyOracle
    access: str
    read_access: str
    max_reports: int
    """Of one submission."""


class Service:
    """Rounds, submissions, estimates and recoveries over one store."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.metrics = Metrics()
        self.refusals = Refusals(store)
        store.watch_pool(self.metrics.pool.inc, self.metrics.pool.dec)
        self.ingest = Ingest(
            store,
            max_waiting=settings.queue_requests,
            group_bytes=settings.group_bytes,
            group_cells=settings.submission_cells,
            request_seconds=settings.request_seconds,
            metrics=self.metrics,
        )
        self._reports_per_submission = settings.reports_per_submission
        self._submission_cells = settings.submission_cells
        self._max_domain_size = settings.max_domain_size
        self._min_free_bytes = settings.min_free_bytes
        self._max_waiting = settings.queue_requests
        settings_key = settings.admin_key.get_secret_value() if settings.admin_key else None
        limits = ReportLimits(settings.report_rate, settings.report_burst) if settings.report_rate else None
        self.access = Access(store, settings_key, open_reports=settings.open_reports, limits=limits)
        self._rounds: OrderedDict[str, OpenRound] = OrderedDict()

    def close(self) -> None:
        """Stop the writer, once it has stored what it holds, write what was refused, and close the store."""
        self.ingest.stop()
        try:
            self.refusals.flush()
        except ServiceError as error:
            _log.warning("refusals since the last flush are not in the stats: %s", error)
        self.store.close()

    def check_ready(self) -> None:
        """Raise a ServiceError unless a submission sent now could be stored."""
        if self.ingest.waiting >= self._max_waiting:
            raise QueueFullError(f"{self.ingest.waiting} submissions wait for their commit")
        free = self.store.database.free_bytes()
        if free is not None and free < self._min_free_bytes:
            raise StorageFullError(f"the disk has {free} bytes free; below {self._min_free_bytes} is not ready")
        if self.ingest.storage_full:
            self.store.check_room()
            self.ingest.storage_full = False
        else:
            self.store.check_writable()

    def ensure_admin_key(self) -> str | None:
        """Make an admin key when there is none; return it this once, for the operator to see."""
        if self.access.has_settings_key or any(key.scope == "admin" for key in self.store.live_keys()):
            return None
        return self.create_key("admin")

    def create_key(self, scope: str, name: str | None = None) -> str:
        """Make another key, keep its hash, and return it, this once. Raises NameTakenError or ParameterError."""
        if scope not in keys.SCOPES:
            raise ParameterError(f"scope: {scope!r} is none of {', '.join(keys.SCOPES)}")
        if name is not None and not re.fullmatch(keys.NAME, name):
            raise ParameterError(f"name: {name[:80]!r} is no name of 1 to 64 of a-z 0-9 . _ -, a letter or digit first")
        key = keys.make_key()
        self.store.add_key(name or keys.make_name(scope), scope, keys.hash_key(key))
        return key

    def open_round(
        self,
        name: str | None,
        parameters: RoundParameters,
        *,
        access: str = "open",
        read_access: str = "public",
        retention: int | None = None,
        series: str | None = None,
    ) -> StoredRound:
        """Open a round; without a name it is called after its protocol. `retention` is in hours, None for ever.

        Raises NameTakenError, SeriesMismatchError or ParameterError.
        """
        if len(parameters.items) > self._max_domain_size:
            raise ParameterError(f"items: this server takes at most {self._max_domain_size} of a round")
        # Ids begin with a capital and names cannot, so the two are never taken for each other.
        id = f"R{secrets.token_hex(12)}"
        name = name or f"{parameters.protocol}-{secrets.token_hex(4)}"
        return self.store.open_round(
            id, name, parameters, access=access, read_access=read_access, retention=retention, series=series
        )

    def delete_round(self, identifier: str) -> None:
        """Delete a round and all its reports."""
        self._rounds.pop(self.store.delete_round(identifier).id, None)

    def mint_tickets(self, identifier: str, count: int) -> Iterator[str]:
        """Return new tickets of a round. Raises ParameterError where the round takes none."""
        round = self.find_round(identifier)
        if round.access != "ticket":
            raise ParameterError(
                f"access: the round's is {round.access!r}, and tickets are for rounds of access 'ticket'"
            )
        return self.access.mint(round.id, count)

    def known_round(self, identifier: str) -> OpenRound | None:
        """Return a round by its id from memory, or None; this is all a submission needs of it."""
        return self._rounds.get(identifier)

    def find_round(self, identifier: str) -> OpenRound:
        """Return a round by id, name or `current`, from the store. Raises RoundNotFoundError."""
        return self.parameters_of(self.store.round(identifier))

    def list_rounds(self, limit: int, before: str | None) -> list[tuple[StoredRound, OpenRound]]:
        """Return rounds, the one opened last first; one that is deleted meanwhile is left out."""
        found = []
        for stored in self.store.rounds(limit, before):
            with contextlib.suppress(RoundNotFoundError):
                found.append((stored, self.parameters_of(stored)))
        return found

    def parameters_of(self, stored: StoredRound) -> OpenRound:
        """Return the immutable part of a stored round."""
        found = self._rounds.get(stored.id)
        if found is None:
            parameters = self.store.parameters(stored.seq)
            oracle, access = parameters.oracle, (stored.access, stored.read_access)
            found = OpenRound(stored.seq, stored.id, parameters, oracle, *access, self._max_reports(oracle))
            self._rounds[stored.id] = found
            if len(self._rounds) > _CACHED_ROUNDS:
                self._rounds.popitem(last=False)
        return found

    def _max_reports(self, oracle: FrequencyOracle) -> int:
        # Only OLH hashes every item for every report: the others are counted as fast as their bytes are read.
        cells = self._submission_cells if oracle.protocol == "olh" else math.inf
        return int(max(1, min(self._reports_per_submission, cells // oracle.domain_size)))

    async def submit(self, round: OpenRound, idempotency_key: str, packed: bytes | bytearray) -> bool:
        """Store checked, packed reports durably; return whether they had been stored before."""
        try:
            return await self.ingest.submit(Submission(round.seq, round.oracle, idempotency_key, packed))
        except RoundNotFoundError:
            self._rounds.pop(round.id, None)
            raise

    def readable_round(self, identifier: str, key: str | None) -> OpenRound:
        """Return a round that this key, or none, may read.

        Raises RoundNotFoundError, UnauthorizedError or ForbiddenError.
        """
        round = self.find_round(identifier)
        if round.read_access == "key":
            self.access.require(key, "analyst")
        return round

    def is_analyst(self, key: str | None) -> bool:
        """Tell whether this is a key of scope analyst or admin."""
        return self.access.has_scope(key, "analyst")

    def tally(self, identifier: str, key: str | None = None) -> tuple[OpenRound, Tally]:
        """Return a round and the tally of every report answered before now.

        Raises UnauthorizedError or ForbiddenError where the round is read with an analyst key and this is none,
        RoundNotFoundError also for a round that is deleted meanwhile.
        """
        round = self.readable_round(identifier, key)
        return round, self.store.tally(round.seq, round.oracle.domain_size)

    def stats(self, identifier: str, key: str | None = None) -> tuple[OpenRound, Tally, dict[str, int]]:
        """Return a round, its tally, and its submissions refused by reason. Raises as `tally` does."""
        round, tally = self.tally(identifier, key)
        try:
            self.refusals.flush()
        except ServiceError as error:  # what can be read is answered
            _log.warning("refusals are not in the stats yet: %s", error)
        return round, tally, self.store.refused(round.seq)

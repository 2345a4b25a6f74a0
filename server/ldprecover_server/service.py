"""What the server does, without HTTP and without SQL."""

import contextlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass

from ldprecover import Estimates, FrequencyOracle, ParameterError, RoundParameters, Tally
from ldprecover.recovery import Recovery, recover
from ldprecover_server import keys
from ldprecover_server.errors import NoReportsError, QueueFullError, RoundNotFoundError, UnauthorizedError
from ldprecover_server.ingest import Ingest, Submission
from ldprecover_server.settings import Settings
from ldprecover_server.store import Store, StoredRound

__all__ = ["OpenRound", "Service", "target_indices"]

_CACHED_ROUNDS = 256


@dataclass(frozen=True)
class OpenRound:
    """What the ingest path needs of a round; none of it ever changes."""

    seq: int
    id: str
    parameters: RoundParameters
    oracle: FrequencyOracle


class Service:
    """Rounds, submissions, estimates and recoveries over one store."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.ingest = Ingest(store, max_waiting=settings.queue_requests, group_bytes=settings.group_bytes)
        self._max_waiting = settings.queue_requests
        self._settings_key = settings.admin_key.get_secret_value() if settings.admin_key else None
        self._rounds: OrderedDict[str, OpenRound] = OrderedDict()

    def close(self) -> None:
        """Stop the writer, once it has stored what it holds, and close the store."""
        self.ingest.stop()
        self.store.close()

    def check_ready(self) -> None:
        """Raise a ServiceError unless a submission sent now could be stored."""
        if self.ingest.waiting >= self._max_waiting:
            raise QueueFullError(f"{self.ingest.waiting} submissions wait for their commit")
        self.store.check_writable()

    def ensure_admin_key(self) -> str | None:
        """Make an admin key when there is none; return it this once, for the operator to see."""
        if self._settings_key is not None or self.store.key_hashes("admin"):
            return None
        return self.create_admin_key()

    def create_admin_key(self) -> str:
        """Make another admin key and keep its hash."""
        key = keys.make_key()
        self.store.add_key(f"admin-{secrets.token_hex(4)}", "admin", keys.hash_key(key))
        return key

    def require_admin(self, key: str | None) -> None:
        """Raise UnauthorizedError unless this is an admin key."""
        hashes = self.store.key_hashes("admin")
        if self._settings_key is not None:
            hashes.append(keys.hash_key(self._settings_key))
        if key is None:
            raise UnauthorizedError("this call needs the header Authorization: Bearer KEY")
        if not keys.is_known(key, hashes):
            raise UnauthorizedError("the key is not an admin key of this server")

    def open_round(self, name: str | None, parameters: RoundParameters) -> StoredRound:
        """Open a round; without a name it is called after its protocol. Raises NameTakenError."""
        # Ids begin with a capital and names cannot, so the two are never taken for each other.
        id = f"R{secrets.token_hex(12)}"
        return self.store.open_round(id, name or f"{parameters.protocol}-{secrets.token_hex(4)}", parameters)

    def delete_round(self, identifier: str) -> None:
        """Delete a round and all its reports."""
        self._rounds.pop(self.store.delete_round(identifier).id, None)

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
            found = OpenRound(stored.seq, stored.id, parameters, parameters.oracle)
            self._rounds[stored.id] = found
            if len(self._rounds) > _CACHED_ROUNDS:
                self._rounds.popitem(last=False)
        return found

    async def submit(self, round: OpenRound, idempotency_key: str, packed: bytes | bytearray) -> bool:
        """Store checked, packed reports durably; return whether they had been stored before."""
        try:
            return await self.ingest.submit(Submission(round.seq, round.oracle, idempotency_key, packed))
        except RoundNotFoundError:
            self._rounds.pop(round.id, None)
            raise

    def tally(self, identifier: str) -> tuple[OpenRound, Tally]:
        """Return a round and the tally of every report answered before now."""
        round = self.find_round(identifier)
        return round, self.store.tally(round.seq, round.oracle.domain_size)

    def recover(
        self, identifier: str, *, method: str, eta: float, targets: list[str | int], malicious_model: str
    ) -> tuple[OpenRound, Tally, Recovery]:
        """Recover a round's frequencies. Raises NoReportsError, or ParameterError for what does not fit."""
        round, tally = self.tally(identifier)
        indices = target_indices(round.parameters, targets)
        if not tally.n:
            raise NoReportsError("the round has no reports to recover from")
        poisoned = Estimates.of(round.oracle, tally).frequencies
        recovery = recover(
            round.oracle, poisoned, method=method, eta=eta, targets=indices, malicious_model=malicious_model
        )
        return round, tally, recovery


def target_indices(parameters: RoundParameters, targets: list[str | int]) -> list[int]:
    """Return the indices of targets given as labels or indices. Raises ParameterError."""
    if not targets:
        return []
    index = {label: i for i, label in enumerate(parameters.items)}
    found = []
    for target in targets:
        if isinstance(target, str):
            if target not in index:
                raise ParameterError(f"targets: no item is labelled {target[:80]!r}")
            found.append(index[target])
        else:
            if not 0 <= target < len(parameters.items):
                raise ParameterError(f"targets: {target} is no index from 0 to {len(parameters.items) - 1}")
            found.append(target)
    return found

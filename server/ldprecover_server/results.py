"""Reads a round's tally, statistics, verdict and export, for callers with read access."""

from collections.abc import Sequence

from ldprecover import Tally
from ldprecover.rounds.export import RoundExport
from ldprecover_server.access.access import Access
from ldprecover_server.rounds import RoundInfo, Rounds
from ldprecover_server.storage import Storage, StoredRound


class Results:
    """Reads the rounds of a storage after checking the caller's access."""

    def __init__(self, rounds: Rounds, access: Access, storage: Storage) -> None:
        self._rounds = rounds
        self._access = access
        self._storage = storage

    def readable(self, identifier: str, key: str | None) -> RoundInfo:
        """Return a round that this key, or none, may read.

        Raises RoundNotFoundError, UnauthorizedError or ForbiddenError.
        """
        return self.look_up(identifier, key)[1]

    def look_up(self, identifier: str, key: str | None) -> tuple[StoredRound, RoundInfo]:
        """Return the same, with its state. Raises as `readable` does."""
        stored, round = self._rounds.get(identifier)
        if round.read_access == "key":
            self._access.require(key, "analyst")
        return stored, round

    def verdicts(self, rounds: Sequence[StoredRound], key: str | None) -> list[str | None]:
        """Return the verdicts in JSON; None for rounds that this key, or none, may not read.

        Raises StoreUnavailableError.
        """
        has_key = None
        verdicts = []
        for stored in rounds:
            verdict = stored.verdict
            if verdict is not None and stored.read_access == "key":
                if has_key is None:  # once for all: it reads the database
                    has_key = self._access.has(key, "analyst")
                verdict = verdict if has_key else None
            verdicts.append(verdict)
        return verdicts

    def counted(self, identifier: str, key: str | None = None) -> tuple[RoundInfo, Tally]:
        """Return a round and its tally, which includes every report answered before.

        Raises what `readable` does, RoundNotFoundError also for a round that is deleted meanwhile.
        """
        round = self.readable(identifier, key)
        return round, self._storage.rounds.tally(round.seq, round.oracle.summary_size)

    def export(self, identifier: str, key: str | None = None) -> RoundExport:
        """Return a round with its tally, to estimate and recover without the server.

        Raises as `counted` does.
        """
        # Before the tally: with a seed the round is closed, and the tally is final.
        stored, round = self.look_up(identifier, key)
        tally = self._storage.rounds.tally(round.seq, round.oracle.summary_size)
        parameters = self._storage.rounds.parameters(round.seq)
        return RoundExport(round.id, round.name, parameters, tally, seed=stored.seed)

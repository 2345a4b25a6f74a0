"""Reads from the storage what analyses need: a round's tally and reports, and other rounds."""

from collections.abc import Iterable, Sequence

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover_interface.base import MAX_HISTORY
from ldprecover_server.analysis.tasks import RoundTallies
from ldprecover_server.results import Results
from ldprecover_server.rounds import RoundInfo, Rounds
from ldprecover_server.storage import Storage, StoredRound


class RoundReader:
    """Reads rounds for analyses; every method blocks on the database."""

    def __init__(self, rounds: Rounds, results: Results, storage: Storage) -> None:
        self._rounds = rounds
        self._results = results
        self._storage = storage

    def evidence(self, round: RoundInfo) -> tuple[Tally, bool]:
        """Return a round's tally, and whether all of its reports can be read.

        That is if they are stored, or if the tally is their histogram. Raises RoundNotFoundError.
        """
        tally, are_stored = self._storage.segments.evidence(round.seq, round.oracle.summary_size)
        return tally, are_stored or round.oracle.traits.histogram

    def snapshot(self, round: RoundInfo) -> tuple[Tally, bool, Iterable[bytes], StoredRound]:
        """Return tally, completeness, the packed reports, and the round, all from one moment.

        Reading the reports raises ReportsGoneError if they are deleted meanwhile. A worker does not
        read them where the tally is their histogram.
        """
        tally, reports, stored = self._storage.segments.tally_and_reports(
            round.seq, round.oracle.summary_size
        )
        is_complete = reports.n == tally.n or round.oracle.traits.histogram
        return tally, tally.n > 0 and is_complete, reports, stored

    def stored_recovery(self, round: RoundInfo) -> bytes | None:
        """Return the recommended recovery that is stored of a closed round, packed."""
        return self._storage.verdicts.recovery(round.seq)

    def items(self, round: RoundInfo) -> list[str]:
        """Return a round's labels. Raises RoundNotFoundError."""
        return self._rounds.items(round)

    def history(
        self, round: RoundInfo, identifiers: Sequence[str], key: str | None
    ) -> list[StoredRound]:
        """Return the rounds that the caller names as history, without duplicates."""
        if len(identifiers) > MAX_HISTORY:
            raise ParameterError(
                f"history must name at most {MAX_HISTORY} rounds, not {len(identifiers)}"
            )
        rounds: dict[int, StoredRound] = {}
        for identifier in identifiers:
            stored, other = self._results.look_up(identifier, key)
            if other.seq == round.seq:
                raise ParameterError("history: a round cannot be its own history")
            if stored.state != "closed":
                raise ParameterError(f"history: the round {stored.name} is still open")
            if not stored.n:
                raise ParameterError(f"history: the round {stored.name} has no reports")
            if not self._storage.rounds.have_same_items(round.seq, other.seq):
                raise ParameterError(f"history: the round {stored.name} has other items")
            rounds[other.seq] = stored
        return list(rounds.values())

    def tallies(self, others: Sequence[StoredRound]) -> RoundTallies:
        """Return oracle and tally of other rounds. Raises RoundNotFoundError."""
        tallies = []
        for stored in others:
            other = self._rounds.info(stored)
            tally = self._storage.rounds.tally(other.seq, other.oracle.summary_size)
            tallies.append((other.oracle, tally))
        return tuple(tallies)

"""Submissions: how large one may be and of whom, and its way into the store."""

import numpy as np

from ldprecover import FrequencyOracle, ReportError
from ldprecover.protocols import wire
from ldprecover_server.access.access import Access, Sender
from ldprecover_server.access.rates import WrongTries
from ldprecover_server.errors import (
    KeyReusedError,
    ReportKeyNeededError,
    RoundNotFoundError,
    StorageFullError,
    TooManyReportsError,
)
from ldprecover_server.ingest.batches import Submission
from ldprecover_server.ingest.writer import Ingest
from ldprecover_server.rejections import DUPLICATE, Rejections
from ldprecover_server.rounds import RoundInfo, Rounds
from ldprecover_server.settings import Settings
from ldprecover_server.storage import Storage

_SLACK = 4096  # bytes beside the reports: names, brackets, white space


class Submissions:
    """Takes submissions to the rounds of a store, each by who sends it."""

    def __init__(
        self,
        rounds: Rounds,
        access: Access,
        ingest: Ingest,
        rejections: Rejections,
        store: Storage,
        settings: Settings,
    ) -> None:
        self._rounds = rounds
        self._access = access
        self._ingest = ingest
        self._rejections = rejections
        self._store = store
        self._settings = settings
        self._wrong_tries = WrongTries()

    def largest(self, round: RoundInfo, sender: Sender, packed: bool) -> int:
        """Return how many bytes the body of a submission may have, decompressed: its reports' most,
        and 4 KiB.

        With a key they may be written with as much white space again.
        """
        oracle = round.oracle
        each = oracle.report_size if packed else wire.longest_json(oracle)
        if sender.key is None:
            most = 1 if sender.submission_key is not None else self._settings.open_reports
            return most * each + _SLACK
        most = self.most_reports(oracle)
        return min(
            self._settings.max_decoded_bytes, most * (each if packed else 2 * each + 8) + _SLACK
        )

    def most_reports(self, oracle: FrequencyOracle) -> int:
        """Return how many reports a submission with a key may hold."""
        most = self._settings.reports_per_submission
        if oracle.hash_tests:  # otherwise reports are counted as fast as their bytes are read
            most = min(most, self._settings.submission_cells // oracle.hash_tests)
        return max(1, most)

    async def submit(
        self, round: RoundInfo, sender: Sender, submission_key: str, packed: bytes | bytearray
    ) -> tuple[int, bool]:
        """Store checked, packed reports durably; return how many, and whether they had been stored
        before.

        Raises TooManyReportsError, ReportKeyNeededError, RateLimitedError, WrongTriesError,
        ReportError, and what `Ingest.submit` raises.
        """
        reports = len(packed) // round.oracle.report_size
        if reports > 1 or sender.key is not None:
            self._admit(round, sender, reports)
        if round.oracle.listed_seeds is not None:
            _check_seed(round.oracle, sender, packed)
        quarantine = round.parameters.quarantine
        submission = Submission(
            round.seq, round.oracle, submission_key, packed, quarantine=quarantine
        )
        place = (round.seq, submission.key)
        await self._wrong_tries.begin(place)
        try:
            duplicate = await self._ingest.submit(submission)
        except RoundNotFoundError:
            self._rounds.evict(round)
            raise
        except KeyReusedError:
            self._wrong_tries.count(place)
            raise
        finally:
            self._wrong_tries.end(place)
        if duplicate:
            self._rejections.count(round.seq, DUPLICATE)
        return reports, duplicate

    def _admit(self, round: RoundInfo, sender: Sender, reports: int) -> None:
        most = self.most_reports(round.oracle)
        if reports > most:
            raise TooManyReportsError(
                f"a submission to this round holds at most {most} reports, and this one has "
                f"{reports}"
            )
        if sender.submission_key is not None:
            if reports > 1:
                raise ReportError(
                    f"a ticket admits one report, and this submission has {reports}", 1
                )
        elif sender.key is not None:
            self._access.take(sender.key, reports)
        elif reports > (most := self._settings.open_reports):
            raise ReportKeyNeededError(
                f"without a report key a submission holds at most {most} report{'s' * (most > 1)}, "
                "and this one has "
                f"{reports}: send one submission for each user, or the header Authorization: "
                "Bearer KEY with a report "
                "key"
            )

    def check_ready(self) -> None:
        """Raise QueueFullError, StorageFullError or StoreUnavailableError unless a submission could
        be stored now.
        """
        free, least = self._store.database.free_bytes(), self._settings.min_free_bytes
        if free is not None and free < least:
            raise StorageFullError(f"the disk has {free} bytes free; below {least} is not ready")
        self._ingest.check_ready()


def _check_seed(oracle: FrequencyOracle, sender: Sender, packed: bytes | bytearray) -> None:
    """Raise ReportError unless the one report has the seed that its ticket picks."""
    assert sender.draw is not None  # seeds are given in rounds of tickets alone
    seed = oracle.seed_of(sender.draw)
    found = int(oracle.seeds(np.frombuffer(packed, oracle.report_dtype))[0])
    if found != seed:
        raise ReportError(
            f"the ticket picks the seed {seed}, and the report has the seed {found}", 0
        )

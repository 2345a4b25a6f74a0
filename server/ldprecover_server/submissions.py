"""Submissions: size limits by caller, checks, and the hand-over to the writer."""

import logging
from dataclasses import dataclass

from ldprecover import FrequencyOracle, ReportError
from ldprecover.sentences import counted
from ldprecover_server import limits
from ldprecover_server.access.access import Access, Sender
from ldprecover_server.errors import (
    ReportKeyNeededError,
    RoundNotFoundError,
    ServiceError,
    StorageFullError,
    TooManyReportsError,
)
from ldprecover_server.ingest.batches import Submission
from ldprecover_server.ingest.writer import Ingest
from ldprecover_server.limits import SharedCall
from ldprecover_server.rounds import Rounds
from ldprecover_server.settings import Settings
from ldprecover_server.storage import Storage, StoredRound

_log = logging.getLogger(__name__)

_READINESS_SECONDS = 1.0
"""Seconds that the result of `/readyz` is kept: anybody may call it, and each check writes to the
database."""
_SLACK = 4096  # bytes of JSON beside the reports: names, brackets, white space


@dataclass(eq=False)
class Submissions:
    """Accepts submissions to rounds, within limits that depend on the sender."""

    rounds: Rounds
    access: Access
    ingest: Ingest
    storage: Storage
    settings: Settings

    def __post_init__(self) -> None:
        self.readiness = SharedCall(self._readiness_error, _READINESS_SECONDS)
        """Returns why a submission could not be stored now, or None."""
        self._is_full = False
        """Whether the last check found too few free bytes, which it logs once."""

    def max_body_bytes(self, round: StoredRound, sender: Sender, packed: bool) -> int:
        """Return the maximum size of a decompressed body in bytes: its reports, and 4 KiB.

        With a report key, JSON may contain as many bytes of white space as of reports. A ticket
        allows one report.
        """
        oracle = round.oracle
        report_bytes = oracle.wire.size if packed else oracle.wire.longest_json
        if sender.key is None:
            reports = 1 if sender.submission_key is not None else self.settings.open_reports
            return reports * report_bytes + _SLACK
        if not packed:
            report_bytes = 2 * report_bytes + 8
        limit = self.max_reports(oracle) * report_bytes + _SLACK
        return min(self.settings.max_decoded_bytes, limit)

    def max_reports(self, oracle: FrequencyOracle) -> int:
        """Return the maximum number of reports in a submission with a report key."""
        limit = self.settings.reports_per_submission
        if oracle.hash_tests:  # without hashing, counting is as fast as reading
            limit = min(limit, limits.SUBMISSION_CELLS // oracle.hash_tests)
        return max(1, limit)

    async def submit(
        self, round: StoredRound, sender: Sender, submission_key: str, packed: bytes | bytearray
    ) -> tuple[int, bool]:
        """Store packed reports durably; return their number, and whether they are a duplicate.

        The caller has checked each report against the protocol. Raises TooManyReportsError,
        ReportKeyNeededError, RateLimitedError, ReportError, and what `Ingest.submit`
        raises.
        """
        reports = len(packed) // round.oracle.wire.size
        if reports > 1 or sender.key is not None:
            self._admit(round, sender, reports)
        submission = Submission(round.seq, round.oracle, submission_key, packed)
        try:
            duplicate = await self.ingest.submit(submission)
        except RoundNotFoundError:
            self.rounds.evict(round)
            raise
        return reports, duplicate

    def _admit(self, round: StoredRound, sender: Sender, reports: int) -> None:
        """Check the number of reports. Raises as `submit` does."""
        limit = self.max_reports(round.oracle)
        if reports > limit:
            raise TooManyReportsError(
                f"a submission to this round holds at most {limit} reports, and this one has "
                f"{reports}"
            )
        if sender.submission_key is not None:
            if reports > 1:
                raise ReportError(
                    f"a ticket admits one report, and this submission has {reports}", 1
                )
        elif sender.key is not None:
            self.access.take(sender.key, reports)
        elif reports > (limit := self.settings.open_reports):
            raise ReportKeyNeededError(
                f"without a report key a submission holds at most {counted(limit, 'report')}, and "
                f"this one has {reports}: send one submission for each user, or the header "
                "Authorization: Bearer KEY with a report key"
            )

    def _readiness_error(self) -> ServiceError | None:
        """Return why a submission could not be stored now: the error that it would meet, or None.

        A BusyError, StorageFullError, StoreUnavailableError or DatabaseGoneError.
        """
        try:
            self._check_ready()
        except ServiceError as error:
            return error
        return None

    def _check_ready(self) -> None:
        free, required = self.storage.database.free_bytes(), self.settings.min_free_bytes
        is_full = free is not None and free < required
        was_full, self._is_full = self._is_full, is_full
        if is_full:
            error = StorageFullError(f"the disk has {free} bytes free, and {required} are required")
            if not was_full:
                _log.warning("the server is not ready: %s", error)
            raise error
        self.ingest.check_ready()

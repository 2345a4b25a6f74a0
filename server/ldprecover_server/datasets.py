"""Exports a round's reports as a dataset, and purges datasets past their retention."""

import contextlib
import logging
from collections.abc import Callable

from ldprecover import RoundExport
from ldprecover_cluster import DatasetWriter, ReportDataset, ReportDatasetError, purge
from ldprecover_server.errors import ServiceError
from ldprecover_server.storage import Snapshot, Storage, StoredRound

_log = logging.getLogger(__name__)

_LATE = "its reports are past their retention: the dataset was deleted before it was complete"


def export_reports(
    storage: Storage,
    identifier: str,
    folder: str,
    *,
    partial: bool = False,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> ReportDataset:
    """Write a round's stored reports as a dataset, or continue an unfinished one; return it.

    All reports are of one moment. `step` is called with the numbers of written reports and of all.
    Raises ReportDatasetError, also if reports are missing without `partial`, and ServiceError.
    """
    round = storage.rounds.find(identifier)
    with DatasetWriter(folder) as writer:
        begun = writer.unfinished()
        if begun is None:
            try:
                with storage.snapshot(round.id) as snapshot:
                    _gather(storage, snapshot, writer, partial)
            except BaseException:
                if not writer.has_plan:
                    # What cannot be deleted is recorded, and the servers purge it.
                    with contextlib.suppress(ReportDatasetError, ServiceError):
                        _discard(storage, writer)
                raise
        elif begun.round != round.id:
            raise ReportDatasetError(
                f"{folder} has an export of the round {begun.name} that has not ended"
            )
        elif writer.missing and not partial:
            raise ReportDatasetError(f"the export in {folder} was begun with --partial")

        def watched(done: int, total: int) -> None:
            if _is_late(storage, round, writer.hours):
                _discard(storage, writer)
                raise ReportDatasetError(_LATE)
            step(done, total)

        return writer.finish(watched)


def _gather(storage: Storage, snapshot: Snapshot, writer: DatasetWriter, partial: bool) -> None:
    round, stored = snapshot.round, sum(snapshot.hours.values())
    if missing := snapshot.tally.n - stored:
        _check_partial(round, missing, partial)
    if round.retention is not None and snapshot.hours:
        storage.datasets.record(
            round.id,
            writer.url,
            str(writer.work),
            retention=round.retention,
            first=min(snapshot.hours),
            last=max(snapshot.hours),
        )
    export = RoundExport(
        round.id,
        round.name,
        snapshot.parameters,
        snapshot.tally,
        seed=round.seed,
    )
    # The pieces read from the snapshot's connection, so they are closed first.
    with contextlib.closing(snapshot.pieces()) as pieces:
        writer.gather(export, snapshot.hours, pieces)


def _discard(storage: Storage, writer: DatasetWriter) -> None:
    """Delete the files of an export, and then its record."""
    writer.discard()
    storage.datasets.forget(writer.url)


def _check_partial(round: StoredRound, missing: int, partial: bool) -> None:
    if missing == round.n:
        raise ReportDatasetError(f"the round {round.name} keeps none of its {round.n:,} reports")
    if not partial:
        raise ReportDatasetError(
            f"the round {round.name} no longer keeps {missing:,} of its {round.n:,} reports: "
            "--partial exports the others, and says so in the dataset"
        )


def _is_late(storage: Storage, round: StoredRound, hours: list[int]) -> bool:
    return round.retention is not None and any(
        hour < storage.hour() - round.retention for hour in hours
    )


class DatasetPurge:
    """Deletes reports past their retention from datasets."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._logged_hours: dict[int, int] = {}
        """The hour of the last logged error, by dataset."""

    def __call__(self) -> bool:
        """Delete what is past its retention; return whether that succeeded for all datasets.

        Errors are logged once an hour, and to be tried again. Raises ServiceError.
        """
        done, now = True, self._storage.hour()
        for dataset in self._storage.datasets.expired():
            try:
                first_hour = purge(
                    dataset.url, dataset.work, dataset.round, dataset.first_stored_hour(now)
                )
                _log.info("purged the dataset %s of reports past their retention", dataset.url)
            except FileNotFoundError:
                _log.warning(
                    "the dataset %s is missing: its owner must delete its old reports", dataset.url
                )
                # Look again as long as some of its reports may be kept.
                first_hour = dataset.first_stored_hour(now)
                if first_hour > dataset.last:
                    first_hour = None
            except ReportDatasetError as error:
                if self._logged_hours.get(dataset.id) != now:
                    _log.error("reports past their retention stay in a dataset: %s", error)
                self._logged_hours[dataset.id] = now
                done = False
                continue
            self._storage.datasets.shorten(dataset.id, first_hour)
        return done

"""A round's reports as a dataset in a folder: written for an operator, and let go of when retention
says so.
"""

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
    store: Storage,
    identifier: str,
    folder: str,
    *,
    partial: bool = False,
    step: Callable[[int, int], None] = lambda done, of: None,
) -> ReportDataset:
    """Write the reports that a round keeps as a new dataset, or go on with one that did not end;
    return it.

    All of it is of one moment. `step` is told how many reports are in their parts, and of how many.
    A round that does not keep all its reports is refused, unless `partial` is said. Raises
    ReportDatasetError and ServiceError.
    """
    round = store.rounds.find(identifier)
    with DatasetWriter(folder) as writer:
        begun = writer.unfinished()
        if begun is None:
            try:
                with store.snapshot(round.id) as snapshot:
                    _gather(store, snapshot, writer, partial)
            except BaseException:
                if not writer.has_plan:
                    # What cannot be deleted is left to the servers, which know of it as long as it
                    # is noted.
                    with contextlib.suppress(ReportDatasetError, ServiceError):
                        _discard(store, writer)
                raise
        elif begun.round != round.id:
            raise ReportDatasetError(
                f"{folder} has an export of the round {begun.name} that has not ended"
            )
        elif writer.missing and not partial:
            raise ReportDatasetError(f"the export in {folder} was begun with --partial")

        def watched(done: int, of: int) -> None:
            if _is_late(store, round, writer.hours):
                _discard(store, writer)
                raise ReportDatasetError(_LATE)
            step(done, of)

        return writer.finish(watched)


def _gather(store: Storage, snapshot: Snapshot, writer: DatasetWriter, partial: bool) -> None:
    round, kept = snapshot.round, sum(snapshot.hours.values())
    if missing := snapshot.tally.n - kept:
        _check_partial(round, missing, partial)
    if round.retention is not None and snapshot.hours:
        store.datasets.record(
            round.id,
            writer.url,
            str(writer.work),
            retention=round.retention,
            first=min(snapshot.hours),
            last=max(snapshot.hours),
        )
    export = RoundExport(
        round.id, round.name, snapshot.parameters, snapshot.tally, snapshot.round.quarantined
    )
    # They are read from the snapshot's connection, so they end before it does.
    with contextlib.closing(snapshot.pieces()) as pieces:
        writer.gather(export, snapshot.hours, pieces)


def _discard(store: Storage, writer: DatasetWriter) -> None:
    """Delete what is there of an export, and then the note of it."""
    writer.discard()
    store.datasets.forget(writer.url)


def _check_partial(round: StoredRound, missing: int, partial: bool) -> None:
    if missing == round.n:
        raise ReportDatasetError(f"the round {round.name} keeps none of its {round.n:,} reports")
    if not partial:
        raise ReportDatasetError(
            f"the round {round.name} no longer keeps {missing:,} of its {round.n:,} reports: "
            "--partial exports the others, and says so in the dataset"
        )


def _is_late(store: Storage, round: StoredRound, hours: list[int]) -> bool:
    return round.retention is not None and any(
        hour < store.hour() - round.retention for hour in hours
    )


class DatasetPurge:
    """Deletes from the datasets that were written what is past its retention."""

    def __init__(self, store: Storage) -> None:
        self._store = store
        self._told: dict[int, int] = {}
        """In which hour it was last logged of a dataset that it cannot be purged."""

    def __call__(self) -> bool:
        """Delete what is past its retention, and return whether nothing is left of it.

        What cannot be deleted is logged once an hour, and is to be tried again. Raises
        ServiceError.
        """
        done, now = True, self._store.hour()
        for dataset in self._store.datasets.expired():
            try:
                left = purge(dataset.url, dataset.work, dataset.round, dataset.first_kept_hour(now))
                _log.info("purged the dataset %s of reports past their retention", dataset.url)
            except FileNotFoundError:
                _log.warning(
                    "the dataset %s is not there: whoever has it must delete its old reports",
                    dataset.url,
                )
                # To be looked for again as long as some of its reports may be kept.
                left = (
                    dataset.first_kept_hour(now)
                    if dataset.first_kept_hour(now) <= dataset.last
                    else None
                )
            except ReportDatasetError as error:
                if self._told.get(dataset.id) != now:
                    _log.error("reports past their retention stay in a dataset: %s", error)
                self._told[dataset.id] = now
                done = False
                continue
            self._store.datasets.shorten(dataset.id, left)
        return done

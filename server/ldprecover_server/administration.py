"""What an operator does to a database beside its servers: for the command line."""

import contextlib
from collections.abc import Callable, Iterator

from ldprecover_cluster import ReportDataset
from ldprecover_server.access.access import create_key as make_key
from ldprecover_server.datasets import export_reports as write_reports
from ldprecover_server.keys import AccessKey
from ldprecover_server.settings import Settings
from ldprecover_server.storage import Finding, QuarantinedReports, Storage


def migrate(settings: Settings) -> list[str]:
    """Bring the database's schema to this version's; return the revisions it went through."""
    with contextlib.closing(Storage(settings.database_url)) as store:
        return store.migrate()


def create_key(settings: Settings, *, scope: str = "admin", name: str | None = None) -> str:
    """Make another key on the database and return it, this once. Raises NameTakenError or
    ParameterError.
    """
    with contextlib.closing(Storage(settings.database_url)) as store:
        store.prepare()
        return make_key(store, scope, name)


def list_keys(settings: Settings) -> list[AccessKey]:
    """Return what is told of the database's keys, by name, the revoked ones too."""
    with contextlib.closing(Storage(settings.database_url)) as store:
        store.prepare()
        return store.keys.all()


def revoke_key(settings: Settings, name: str) -> None:
    """Revoke a key of the database, for good. Raises KeyNotFoundError."""
    with contextlib.closing(Storage(settings.database_url)) as store:
        store.prepare()
        store.keys.revoke(name)


def check(settings: Settings) -> list[Finding]:
    """Return what in the database does not agree with itself; nothing is written. Raises
    ConfigurationError.
    """
    with contextlib.closing(Storage(settings.database_url)) as store:
        store.prepare(migrate=False)
        return store.check()


def quarantined(settings: Settings, round: str) -> Iterator[QuarantinedReports]:
    """Yield what a round has in quarantine; nothing is written. Raises ConfigurationError and
    RoundNotFoundError.
    """
    with contextlib.closing(Storage(settings.database_url)) as store:
        store.prepare(migrate=False)
        yield from store.filters.quarantined(round)


def export_reports(
    settings: Settings,
    round: str,
    folder: str,
    *,
    partial: bool = False,
    step: Callable[[int, int], None],
) -> ReportDataset:
    """Write a round's reports as a dataset, or go on with one; `step` is told of how many reports
    how many are written.

    A round that does not keep all its reports is refused unless `partial` is said. The server may
    be running. Raises ConfigurationError, RoundNotFoundError and ReportDatasetError.
    """
    with contextlib.closing(Storage(settings.database_url)) as store:
        store.prepare(migrate=False)
        return write_reports(store, round, folder, partial=partial, step=step)

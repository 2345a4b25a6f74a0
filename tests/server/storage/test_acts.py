"""How many acts are kept, and how long."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from tests.server.storage.conftest import OpenStorage

from ldprecover_server.storage import Storage
from ldprecover_server.storage.acts import MAX_ACTS, MAX_AGE
from ldprecover_server.storage.schema import acts


def test_old_acts_are_deleted(open_storage: OpenStorage, fresh: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    storage = open_storage(fresh, clock=lambda: now)
    with storage.database.write() as connection:
        row = {"at": now.isoformat(), "act": "open round", "subject": "a"}
        connection.execute(sa.insert(acts), [row] * (MAX_ACTS + 2))
    assert len(storage.acts.all()) == MAX_ACTS
    storage.acts.delete_old()
    assert rows_of(storage) == MAX_ACTS
    now += MAX_AGE
    storage.acts.write("ada", "open round", "b")
    now += timedelta(seconds=1)
    assert [act.subject for act in storage.acts.all()] == ["b"]
    storage.acts.delete_old()
    assert rows_of(storage) == 1


def rows_of(storage: Storage) -> int:
    with storage.database.read() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(acts)) or 0

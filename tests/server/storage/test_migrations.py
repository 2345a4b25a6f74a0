"""The schema's history leads to the schema of the code, on both databases, and never changes."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from tests.server.storage.conftest import Group, Submitted
from tools.postgres import Cluster

import ldprecover_server
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.storage import Outcome, Store, migrations
from ldprecover_server.storage.schema import metadata

VERSIONS = Path(ldprecover_server.__file__).parent / "store" / "migrations" / "versions"

SUBMITTED = Submitted(b"old", (0,))


@pytest.fixture
def empty(dialect: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database without a table."""
    with ExitStack() as stack:
        if dialect == "sqlite":
            yield f"sqlite:///{tmp_path / 'ldprecover.db'}"
        else:
            cluster: Cluster = request.getfixturevalue("cluster")
            name = cluster.create_empty()
            stack.callback(cluster.drop, name)
            yield cluster.url(name)


def test_a_migrated_database_has_exactly_the_tables_of_the_code(empty: str) -> None:
    """But for a foreign key that SQLite keeps, where it costs nothing."""
    with closing(Store(empty)) as store:
        assert store.migrate()[0] == "0001"
        with store.database.read() as connection:
            differs = compare_metadata(MigrationContext.configure(connection), metadata)
        kept = [(what, key.table.name) for what, key in differs]
        assert kept == ([("remove_fk", "segments")] if store.database.dialect == "sqlite" else [])
        store.prepare()


def test_a_database_of_the_first_schema_keeps_its_rounds_and_reports(empty: str) -> None:
    """Written by the statements of its day."""
    with closing(Store(empty)) as store:
        with store.database.write() as connection:
            config = migrations._config()
            config.attributes["connection"] = connection
            command.upgrade(config, "0001")
            connection.execute(
                sa.text(
                    "INSERT INTO rounds (id, name, protocol, epsilon, items, access, read_access, "
                    "state, opened_at) "
                    "VALUES ('R1', 'old', 'grr', 1, :items, 'open', 'public', 'closed', "
                    "'2024-01-01T00:00:00+00:00')"
                ),
                {"items": b'["a","b"]'},
            )
            counts = np.array([2, 1], dtype="<i8").tobytes()
            connection.execute(
                sa.text(
                    "INSERT INTO tallies (round, process, n, counts) VALUES (1, 0, 3, :counts)"
                ),
                {"counts": counts},
            )
            same = "protocol, epsilon, items, access, read_access, state, opened_at"
            for row in (
                (
                    f"rounds (id, name, retention, {same}) SELECT 'R2', 'short', 36, {same} FROM "
                    "rounds"
                ),
                (
                    f"rounds (id, name, hash_range, {same}) SELECT 'R3', 'hashed', 7, {same} FROM "
                    "rounds WHERE id = 'R1'"
                ),
                "tallies (round, process, n, counts) SELECT 2, process, n, counts FROM tallies",
                "segments (round, hour, n, data) SELECT seq, 1, 1, items FROM rounds",
            ):
                connection.exec_driver_sql(f"INSERT INTO {row}")
            keys = sa.text(
                "INSERT INTO keys (round, key, digest) VALUES (1, :key, :digest), (3, :digest, "
                ":key)"
            )
            connection.execute(keys, vars(SUBMITTED))
        assert store.migrate() == [
            "0002",
            "0003",
            "0004",
            "0005",
            "0006",
            "0007",
            "0008",
            "0009",
            "0010",
            "0011",
        ]
        with store.database.read() as connection:
            hashed = connection.exec_driver_sql(
                "SELECT parameter FROM rounds WHERE name = 'hashed'"
            ).scalar_one()
            purged = connection.exec_driver_sql(
                "SELECT name, purged FROM rounds ORDER BY seq"
            ).all()
        assert purged == [("old", 0), ("short", 2), ("hashed", 0)]
        assert hashed == 7
        old = store.round("old")
        assert (old.n, old.series, old.state) == (3, None, "closed")
        assert store.tally(old.seq, 2).summary.tolist() == [2, 1]
        again = [Group(1, [SUBMITTED, Submitted(SUBMITTED.name, (1,))]), Group(3, [SUBMITTED])]
        assert store.commit(again) == [[Outcome.DUPLICATE, Outcome.KEY_REUSED], [Outcome.CLOSED]]


def test_migrating_again_does_nothing(empty: str) -> None:
    with closing(Store(empty)) as store:
        assert store.migrate() != []
        assert store.migrate() == []


def test_of_two_who_migrate_at_once_one_does_it(empty: str) -> None:
    def migrate(_: int) -> list[str]:
        with closing(Store(empty)) as store:
            return store.migrate()

    with ThreadPoolExecutor(2) as pool:
        went_through = sorted(pool.map(migrate, range(2)))
    assert went_through[0] == []
    assert went_through[1] != []


@pytest.mark.postgres
def test_a_migration_may_take_as_long_as_it_takes(empty: str) -> None:
    """The bound on other statements does not hold for it."""
    bounds: set[str] = set()

    def look(connection: sa.Connection, cursor: object, statement: str, *more: object) -> None:
        if "CREATE TABLE rounds" in statement:
            bounds.add(str(connection.exec_driver_sql("SHOW statement_timeout").scalar_one()))

    with closing(Store(empty)) as store:
        sa.event.listen(store.database.engine, "before_cursor_execute", look)
        store.migrate()
        with store.database.read() as connection:
            bounds.add(str(connection.exec_driver_sql("SHOW statement_timeout").scalar_one()))
    assert bounds == {"0", "1min"}


@pytest.mark.postgres
def test_a_postgres_that_is_not_migrated_is_refused_with_the_command_to_run(empty: str) -> None:
    with (
        closing(Store(empty)) as store,
        pytest.raises(
            ConfigurationError, match=r"run: ldprecover migrate --database-url '?postgresql"
        ),
    ):
        store.prepare()


def test_a_migration_never_changes() -> None:
    """Databases that went through it would not be what it now says: write the next one instead.

    A new migration adds its line: sha256sum *.py > CHECKSUMS, in the folder of the versions.
    """
    listed = dict(line.split()[::-1] for line in (VERSIONS / "CHECKSUMS").read_text().splitlines())
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VERSIONS.glob("*.py")
    }
    assert found == listed

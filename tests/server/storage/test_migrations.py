"""Migrations lead from the first version to the schema of the code, and never change."""

import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from tests.postgres import Cluster
from tests.server.storage.conftest import Submitted, commit, open_round

from ldprecover_server.errors import ConfigurationError
from ldprecover_server.storage import Outcome, Storage, migrations
from ldprecover_server.storage.schema import metadata

VERSIONS = migrations.FOLDER / "versions"
LATER_REVISION = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("rounds", sa.Column("note", sa.Text, nullable=False, server_default="none"))
"""

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


def test_database_of_0_1_0_gets_the_tables_of_the_code(empty: str) -> None:
    """Its statements never change: a schema that changes without a revision fails here."""
    with closing(Storage(empty)) as storage:
        file = Path(__file__).with_name(f"0001.{storage.database.dialect}.sql")
        with storage.database.write() as connection:
            for statement in file.read_text().split(";\n\n"):
                connection.exec_driver_sql(statement)
        assert storage.migrate() == []
        # SQLAlchemy reads a schema as text; the storage's connections read in binary.
        with sa.create_engine(empty, poolclass=sa.NullPool).connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_server_default": True})
            assert compare_metadata(context, metadata) == []
        storage.prepare()


@pytest.fixture
def later_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add a later revision to the history of the schema."""
    folder = shutil.copytree(migrations.FOLDER, tmp_path / "migrations")
    (folder / "versions" / "0002_later.py").write_text(LATER_REVISION)
    monkeypatch.setattr(migrations, "FOLDER", folder)
    migrations.revisions.cache_clear()
    yield
    migrations.revisions.cache_clear()


def test_later_revision_keeps_rounds_and_reports(
    empty: str, request: pytest.FixtureRequest
) -> None:
    with closing(Storage(empty)) as storage:
        assert storage.migrate() == ["0001"]
        seq = open_round(storage)
        assert commit(storage, seq, SUBMITTED) == [Outcome.STORED]
        request.getfixturevalue("later_revision")
        with pytest.raises(ConfigurationError, match="run: ldprecover admin migrate"):
            storage.prepare(migrate=False)
        assert storage.migrate() == ["0002"]
        with storage.database.read() as connection:
            notes = connection.exec_driver_sql("SELECT note FROM rounds").scalars().all()
        assert notes == ["none"]
        assert storage.rounds.tally([seq], 6).n == 1
        assert commit(storage, seq, SUBMITTED) == [Outcome.DUPLICATE]


def test_one_of_two_concurrent_migrations_runs(empty: str) -> None:
    def migrate(_: int) -> list[str]:
        with closing(Storage(empty)) as storage:
            return storage.migrate()

    with ThreadPoolExecutor(2) as pool:
        migrated = sorted(pool.map(migrate, range(2)))
    assert migrated[0] == []
    assert migrated[1] != []


@pytest.mark.postgres
def test_migration_has_no_statement_timeout(empty: str) -> None:
    timeouts: set[str] = set()

    def look(connection: sa.Connection, cursor: object, statement: str, *more: object) -> None:
        if "CREATE TABLE rounds" in statement:
            timeouts.add(str(connection.exec_driver_sql("SHOW statement_timeout").scalar_one()))

    with closing(Storage(empty)) as storage:
        sa.event.listen(storage.database.engine, "before_cursor_execute", look)
        storage.migrate()
        with storage.database.read() as connection:
            timeouts.add(str(connection.exec_driver_sql("SHOW statement_timeout").scalar_one()))
    assert timeouts == {"0", "1min"}


@pytest.mark.postgres
def test_rejects_unmigrated_postgres_with_the_command(empty: str) -> None:
    with (
        closing(Storage(empty)) as storage,
        pytest.raises(
            ConfigurationError, match=r"run: ldprecover admin migrate, with the server's LDPRE"
        ),
    ):
        storage.prepare()


def test_a_migration_never_changes() -> None:
    """Migrated databases would differ from it: write the next migration instead.

    A new migration adds its line: sha256sum *.py > CHECKSUMS, in the folder of the versions.
    """
    listed = dict(line.split()[::-1] for line in (VERSIONS / "CHECKSUMS").read_text().splitlines())
    checksums = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VERSIONS.glob("*.py")
    }
    assert checksums == listed

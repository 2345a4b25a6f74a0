"""`serve` with options from the server's settings, and calls on the server's database.

Importing this module loads the server, which takes longer than most commands run: import it late.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ldprecover.errors import ParameterError
from ldprecover.protocols.wire import to_json
from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cluster import ReportDataset, ReportDatasetError
from ldprecover_server import (
    ConfigurationError,
    Settings,
    check,
    create_key,
    export_reports,
    list_keys,
    migrate,
    quarantined,
    revoke_key,
    serve,
)
from ldprecover_server.errors import KeyNotFoundError, ServiceError
from ldprecover_server.keys import AccessKey
from ldprecover_server.storage import Finding

_PREFIX = "LDPRECOVER_"


def serve_options() -> Signature:
    """Return the signature of `serve`: one option for each of the server's settings."""
    return Signature([_option(name, field) for name, field in Settings.model_fields.items()])


def run_server(**options: Any) -> None:
    """Serve with these settings, and defaults for the others, until SIGINT or SIGTERM."""
    with _translate_errors():
        try:
            serve(_settings(options))
        except KeyboardInterrupt:
            return  # Ctrl-C is the usual way to stop a server


def new_key(*, scope: str, name: str | None, **options: Any) -> tuple[str, str]:
    """Return a new key of a database, and a description of key and database."""
    with _translate_errors():
        settings = _existing(options)
        file = _file(settings)
        article = "A" if scope == "report" else "An"
        key = create_key(settings, scope=scope, name=name)
        return key, f"{article} {scope} key of {'the database' if file is None else file}"


def stored_keys(**options: Any) -> list[AccessKey]:
    """Return name, scope and dates of all keys of a database."""
    with _translate_errors():
        return list_keys(_existing(options))


def migrate_database(**options: Any) -> list[str]:
    """Migrate a database to this version's schema; return the revisions applied."""
    with _translate_errors():
        return migrate(_settings(options))


def check_database(**options: Any) -> list[Finding]:
    """Return the inconsistencies of a database."""
    with _translate_errors():
        return check(_existing(options))


def quarantined_reports(round: str, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield a round's quarantined reports as JSON, by reason and hour, in the wire form."""
    with _translate_errors():
        for group in quarantined(_existing(options), round):
            hour = datetime.fromtimestamp(group.hour * 3600, UTC).isoformat()
            yield {"reason": group.reason, "hour": hour, **to_json(group.oracle, group.reports)}


def export_dataset(
    round: str, folder: str, *, partial: bool, step: Callable[[int, int], None], **options: Any
) -> ReportDataset:
    """Write a round of a database as a dataset, or resume an interrupted export."""
    with _translate_errors():
        return export_reports(_existing(options), round, folder, partial=partial, step=step)


def end_key(name: str, **options: Any) -> None:
    """Revoke a key of a database."""
    with _translate_errors():
        revoke_key(_existing(options), name)


def _existing(options: dict[str, Any]) -> Settings:
    """Return settings with an existing database.

    Raises UsageError otherwise: a command must not create a database that no server uses.
    """
    settings = _settings(options)
    file = _file(settings)
    if file is not None and not (file.is_file() and file.stat().st_size):
        raise UsageError(
            f"there is no database {file}: run this in your server's folder, or name its database "
            "with --database-url or LDPRECOVER_DATABASE_URL; `ldprecover serve` or `ldprecover "
            "migrate` makes a new one"
        )
    return settings


def _file(settings: Settings) -> Path | None:
    """Return the file of an SQLite database; None for other databases and unreadable URLs."""
    scheme, _, file = settings.database_url.partition(":///")
    return (
        Path(file).absolute()
        if scheme in ("sqlite", "sqlite+pysqlite") and file not in ("", ":memory:")
        else None
    )


def _settings(options: dict[str, Any]) -> Settings:
    return Settings(**{name: value for name, value in options.items() if value is not None})


def _option(name: str, field: FieldInfo) -> Parameter:
    kind = field.annotation if field.annotation in (int, float, str) else str
    default = None if field.default == () else field.default
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        envvar=f"{_PREFIX}{name.upper()}",
        help=field.description,
        # Short: otherwise the help cuts the variable's name at 80 columns.
        metavar="TEXT" if kind is str else "N",
    )
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind | None, option]
    )


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    except (KeyNotFoundError, ReportDatasetError, ServiceError) as error:
        raise CommandError(str(error)) from error
    except ParameterError as error:
        raise UsageError(str(error)) from error
    except ValidationError as error:
        # Without the value: it may be a key.
        faults = error.errors(include_input=False, include_url=False, include_context=False)
        raise UsageError(
            "; ".join(f"{_option_names(e['loc'])}: {e['msg']}" for e in faults)
        ) from None


def _option_names(location: tuple[int | str, ...]) -> str:
    name = str(location[0])
    return f"--{name.replace('_', '-')} or {_PREFIX}{name.upper()}"

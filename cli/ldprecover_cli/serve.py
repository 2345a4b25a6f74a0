"""`serve`, its options made from the server's settings, and the keys of its database.

Importing this module loads the server, which takes longer than most commands run.
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


def run_server(**given: Any) -> None:
    """Serve with these settings, the others being their defaults, until SIGINT or SIGTERM."""
    with _translated_errors():
        try:
            serve(_settings(given))
        except KeyboardInterrupt:
            return  # how a server at a terminal is stopped


def new_key(*, scope: str, name: str | None, **given: Any) -> tuple[str, str]:
    """Return another key of the database in these settings, and words on which database that is."""
    with _translated_errors():
        settings = _of_a_server(given)
        file = _file(settings)
        a = "A" if scope == "report" else "An"
        made = create_key(settings, scope=scope, name=name)
        return made, f"{a} {scope} key of {'the database' if file is None else file}"


def all_keys(**given: Any) -> list[AccessKey]:
    """Return what is told of the keys of the database in these settings."""
    with _translated_errors():
        return list_keys(_of_a_server(given))


def migrate_database(**given: Any) -> list[str]:
    """Bring the database in these settings to this version's schema; return the revisions it went
    through.
    """
    with _translated_errors():
        return migrate(_settings(given))


def check_database(**given: Any) -> list[Finding]:
    """Return what in the database in these settings does not agree with itself."""
    with _translated_errors():
        return check(_of_a_server(given))


def set_aside(round: str, **given: Any) -> Iterator[dict[str, Any]]:
    """Yield what a round has in quarantine, as JSON: why, since which hour, and the reports as they
    are submitted.
    """
    with _translated_errors():
        for each in quarantined(_of_a_server(given), round):
            hour = datetime.fromtimestamp(each.hour * 3600, UTC).isoformat()
            yield {"reason": each.reason, "hour": hour, **to_json(each.oracle, each.reports)}


def export_dataset(
    round: str, folder: str, *, partial: bool, step: Callable[[int, int], None], **given: Any
) -> ReportDataset:
    """Write a round of the database in these settings as a dataset, or go on with one that did not
    end.
    """
    with _translated_errors():
        return export_reports(_of_a_server(given), round, folder, partial=partial, step=step)


def end_key(name: str, **given: Any) -> None:
    """Revoke a key of the database in these settings."""
    with _translated_errors():
        revoke_key(_of_a_server(given), name)


def _of_a_server(given: dict[str, Any]) -> Settings:
    """Return settings whose database is there. Raises UsageError: keys of a new one would open no
    server's door.
    """
    settings = _settings(given)
    file = _file(settings)
    if file is not None and not (file.is_file() and file.stat().st_size):
        raise UsageError(
            f"there is no database {file}: run this in the folder your server runs in, or name its "
            "database with "
            "--database-url or LDPRECOVER_DATABASE_URL; `ldprecover serve` or `ldprecover "
            "migrate` makes a new one"
        )
    return settings


def _file(settings: Settings) -> Path | None:
    """Return the file that the database is in; None where it is not in a file, or the URL cannot be
    read.
    """
    scheme, _, file = settings.database_url.partition(":///")
    return (
        Path(file).absolute()
        if scheme in ("sqlite", "sqlite+pysqlite") and file not in ("", ":memory:")
        else None
    )


def _settings(given: dict[str, Any]) -> Settings:
    return Settings(**{name: value for name, value in given.items() if value is not None})


def _option(name: str, field: FieldInfo) -> Parameter:
    kind = field.annotation if field.annotation in (int, float, str) else str
    default = None if field.default == () else field.default
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        envvar=f"{_PREFIX}{name.upper()}",
        help=field.description,
        metavar="TEXT"
        if kind is str
        else "N",  # short, so that no variable's name is cut at 80 columns
    )
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind | None, option]
    )


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    except (KeyNotFoundError, ReportDatasetError, ServiceError) as error:
        raise CommandError(str(error)) from error
    except ParameterError as error:
        raise UsageError(str(error)) from error
    except ValidationError as error:
        # The value itself is left out: it may be a key.
        wrong = error.errors(include_input=False, include_url=False, include_context=False)
        raise UsageError("; ".join(f"{_named(e['loc'])}: {e['msg']}" for e in wrong)) from None


def _named(place: tuple[int | str, ...]) -> str:
    name = str(place[0])
    return f"--{name.replace('_', '-')} or {_PREFIX}{name.upper()}"

"""`serve`, its options made from the server's settings, and the keys of its database.

Importing this module loads the server, which takes longer than most commands run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ldprecover.errors import ParameterError
from ldprecover_cli.failures import CommandError, UsageError
from ldprecover_server import ConfigurationError, Settings, create_key, list_keys, migrate, revoke_key, serve
from ldprecover_server.errors import KeyNotFoundError, ServiceError
from ldprecover_server.keys import AccessKey

__all__ = ["all_keys", "end_key", "migrate_database", "new_key", "run_server", "serve_options"]

_PREFIX = "LDPRECOVER_"


def serve_options() -> Signature:
    """Return the signature of `serve`: one option for each of the server's settings."""
    return Signature([_option(name, field) for name, field in Settings.model_fields.items()])


def run_server(**given: Any) -> None:
    """Serve with these settings, the others being their defaults, until SIGINT or SIGTERM."""
    with _in_words():
        try:
            serve(_settings(given))
        except KeyboardInterrupt:
            return  # how a server at a terminal is stopped


def new_key(*, scope: str, name: str | None, **given: Any) -> tuple[str, str]:
    """Return another key of the database in these settings, and words on which database that is."""
    with _in_words():
        settings = _settings(given)
        where = _where(settings.database_url)
        a = "A" if scope == "report" else "An"
        return create_key(settings, scope=scope, name=name), f"{a} {scope} key of {where}"


def all_keys(**given: Any) -> list[AccessKey]:
    """Return what is told of the keys of the database in these settings."""
    with _in_words():
        return list_keys(_settings(given))


def migrate_database(**given: Any) -> list[str]:
    """Bring the database in these settings to this version's schema; return the revisions it went through."""
    with _in_words():
        return migrate(_settings(given))


def end_key(name: str, **given: Any) -> None:
    """Revoke a key of the database in these settings."""
    with _in_words():
        revoke_key(_settings(given), name)


def _where(database_url: str) -> str:
    if not database_url.startswith("sqlite:///"):
        return "the database"
    file = Path(database_url.removeprefix("sqlite:///"))
    new = "" if file.exists() else ", which did not exist before: is this the folder your server runs in?"
    return f"{file.absolute()}{new}"


def _settings(given: dict[str, Any]) -> Settings:
    return Settings(**{name: value for name, value in given.items() if value is not None})


def _option(name: str, field: FieldInfo) -> Parameter:
    kind = field.annotation if field.annotation in (int, str) else str
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        envvar=f"{_PREFIX}{name.upper()}",
        help=field.description,
    )
    return Parameter(name, Parameter.KEYWORD_ONLY, default=field.default, annotation=Annotated[kind | None, option])


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    except (KeyNotFoundError, ServiceError) as error:
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

"""`serve`, its options made from the server's settings, and `key create`.

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

from ldprecover_cli.failures import CommandError, UsageError
from ldprecover_server import ConfigurationError, Settings, create_key, serve
from ldprecover_server.errors import ServiceError

__all__ = ["new_key", "run_server", "serve_options"]

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


def new_key(**given: Any) -> tuple[str, str]:
    """Return another admin key of the database in these settings, and words on which database that is."""
    with _in_words():
        settings = _settings(given)
        file = Path(settings.database_url.removeprefix("sqlite:///"))
        new = "" if file.exists() else ", which did not exist before: is this the folder your server runs in?"
        return create_key(settings), f"An admin key of {file.absolute()}{new}"


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
    except ServiceError as error:
        raise CommandError(str(error)) from error
    except ValidationError as error:
        # The value itself is left out: it may be a key.
        wrong = error.errors(include_input=False, include_url=False, include_context=False)
        raise UsageError("; ".join(f"{_named(e['loc'])}: {e['msg']}" for e in wrong)) from None


def _named(place: tuple[int | str, ...]) -> str:
    name = str(place[0])
    return f"--{name.replace('_', '-')} or {_PREFIX}{name.upper()}"

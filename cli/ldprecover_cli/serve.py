"""`serve` with options from the server's settings, and calls on the server's database.

Importing this module loads the server, which takes longer than most commands run: import it late.
"""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from typer import Context, Exit, Option, echo

from ldprecover.errors import ParameterError
from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cli.output import opened_in_browser
from ldprecover_interface.invalid_fields import invalid_fields
from ldprecover_server import ConfigurationError, Settings, serve
from ldprecover_server.errors import KeyNotFoundError, ServiceError

_PREFIX = "LDPRECOVER_"
_SHOWN = (
    *("host", "port", "allowed_hosts", "cors_origins"),
    *("database_url", "workers", "admin_key", "plugins", "log_format"),
)
"""Settings that `--help` shows; `--help-all` shows the others too."""


def serve_options() -> Signature:
    """Return the signature of `serve`: an option for each setting, --open, and --help-all."""
    fields = Settings.model_fields
    help_all = Option(
        "--help-all", is_eager=True, callback=_show_all, help=f"Show all {len(fields)} options."
    )
    open_page = Option(
        "--open",
        help="Open the page with an admin key that ends with the server, on a loopback address.",
    )
    kind = Parameter.KEYWORD_ONLY
    return Signature(
        [
            *(_option(name, field) for name, field in fields.items()),
            Parameter("open_page", kind, default=False, annotation=Annotated[bool, open_page]),
            Parameter("help_all", kind, default=False, annotation=Annotated[bool, help_all]),
        ]
    )


def _show_all(ctx: Context, requested: bool) -> None:
    """Print the help with all options, and end the command."""
    if requested and not ctx.resilient_parsing:
        for option in ctx.command.params:
            option.hidden = False  # type: ignore[attr-defined]
        echo(ctx.get_help())
        raise Exit


def run_server(*, open_page: bool = False, help_all: bool = False, **options: Any) -> None:
    """Serve with these settings, and defaults for the others, until SIGINT or SIGTERM."""
    with server_errors(), ExitStack() as stack:

        def show(link: str) -> None:
            # By its default action SIGINT would leave the file of the link behind.
            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            echo(f"The page, with an admin key until the server ends: {link}")
            stack.enter_context(opened_in_browser(link))

        serve(_settings(options), show if open_page else None)


@contextmanager
def database(url: str | None) -> Iterator[Settings]:
    """Yield the settings of a database; errors of the server become errors of the command."""
    with server_errors():
        yield _settings({"database_url": url})


def database_file(settings: Settings) -> Path | None:
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
    default = None if field.default == () else field.default
    option = Option(
        f"--{name.replace('_', '-')}",
        envvar=f"{_PREFIX}{name.upper()}",
        help=" ".join((field.description or "").split()),
        # Short: otherwise the help cuts the variable's name at 80 columns.
        metavar="N" if field.annotation in (int, float) else "TEXT",
        hidden=name not in _SHOWN,
    )
    return Parameter(
        # Text: the server checks numbers, and does not repeat what may be a key.
        name,
        Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[str | None, option],
    )


@contextmanager
def server_errors() -> Iterator[None]:
    """Turn errors of the server into errors of the command."""
    try:
        yield
    except (ConfigurationError, ParameterError) as error:
        raise UsageError(str(error)) from error
    except (KeyNotFoundError, ServiceError) as error:
        raise CommandError(str(error)) from error
    except ValidationError as error:
        # Without the value: it may be a key.
        errors = error.errors(include_input=False, include_url=False)
        names = {each["loc"][0]: None for each in errors}
        faults = invalid_fields(errors, names, Settings.model_json_schema(), show=False)
        raise UsageError(
            "; ".join(f"{_option_names(name)}: {reason}" for name, reason in faults)
        ) from None


def _option_names(name: str) -> str:
    return f"--{name.replace('_', '-')} or {_PREFIX}{name.upper()}"

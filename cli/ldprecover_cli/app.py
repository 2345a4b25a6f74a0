"""The command line: all commands; errors become one line and an exit code here."""

import os
import re
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points, version
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup
from typer.main import get_command

from ldprecover_cli import admin, file, plan, result, round, send, sim, study, survey
from ldprecover_cli.audit.command import audit
from ldprecover_cli.classroom import classroom
from ldprecover_cli.demo.command import demo
from ldprecover_cli.errors import explain, with_notes
from ldprecover_cli.grammar import summary
from ldprecover_cli.interrupts import exit_interrupted
from ldprecover_cli.options import is_terminal
from ldprecover_cli.output import fail, note, warn
from ldprecover_client.errors import InsecureTransportWarning, OddLabelsError

_HELP = ["-h", "--help"]


class _RootGroup(TyperGroup):
    """The command `ldprecover`.

    `serve` is built from the server's settings when it is called, not before.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, _serve_command() if name == "serve" else command, rest

    def invoke(self, ctx: Any) -> Any:
        if signal.getsignal(signal.SIGINT) is exit_interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            note(with_notes("Interrupted.", stopped))
            raise typer.Exit(130) from None
        except SystemExit as stopped:  # by SIGTERM or SIGHUP
            if notes := with_notes("", stopped):
                note(f"Ended.{notes}")
            raise


app = typer.Typer(
    cls=_RootGroup, no_args_is_help=True, context_settings={"help_option_names": _HELP}
)


def run(arguments: list[str]) -> int:
    """Run one command line; return its exit code. An error is the last line on standard error."""
    state = SimpleNamespace(debug=False)
    if os.environ.get("COLUMNS") == "0":  # of a terminal without a size; rich would print nothing
        del os.environ["COLUMNS"]
    if "_LDPRECOVER_COMPLETE" in os.environ:  # a shell asks for words, and no command runs
        _load_plugins(lambda error: None)
    try:
        with _warnings_as_lines():
            # Standalone, typer would draw a box around each error and exit.
            code = _click_command(app).main(
                arguments, prog_name="ldprecover", standalone_mode=False, obj=state
            )
    except typer.Abort:  # Ctrl-C at a prompt
        note("Interrupted.")
        return 130
    except typer.TyperException as error:
        _replace_pydantic_message(error)
        if message := error.format_message():  # empty if the help was shown instead
            fail(f"{message}{_negative_number(error)} {_try_help(error)}")
        return error.exit_code
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            return 141  # as a shell says of a program that SIGPIPE ends
        raise
    except Exception as error:  # noqa: BLE001  the outermost boundary
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps it in __set_name__
            note("Interrupted.")
            return 130
        is_odd = isinstance(error.__cause__ or error, OddLabelsError)
        may_ask = is_odd and is_terminal() and "run" not in arguments  # of a study, which has a key
        if may_ask and typer.confirm(f"{error}. Take all as it is?", err=True):
            return run([*arguments, "--as-is"])
        if state.debug:
            traceback.print_exc()
        explanation = explain(error, arguments)
        if explanation is None:
            fault = "a fault of ldprecover or of a plugin; `ldprecover --debug …` shows where"
            fail(f"{with_notes(f'{type(error).__name__}: {error}', error)}: {fault}")
            return 1
        fail(explanation[0])
        return explanation[1]
    return code if isinstance(code, int) else 0


def _click_command(application: typer.Typer) -> Any:
    """Return the click command, whose help shows no type for options without value."""
    command = get_command(application)
    _adapt_help(command)
    return command


def _adapt_help(command: Any) -> None:
    """Unwrap the paragraphs of the help, and remove the type of options without value.

    Subcommands are adapted too.
    """
    paragraphs = (command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    for option in (
        *command.params,
        command.get_help_option(typer.Context(command, help_option_names=_HELP)),
    ):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for subcommand in getattr(command, "commands", {}).values():
        _adapt_help(subcommand)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print warnings about insecure transport as one line; others as Python does."""
    with warnings.catch_warnings():
        default = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, InsecureTransportWarning):
                warn(message)
            else:
                default(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _replace_pydantic_message(error: typer.TyperException) -> None:
    from pydantic import ValidationError

    if isinstance(error.__cause__, ValidationError):
        from ldprecover_experiments.validation import reason

        error.message = reason(error.__cause__.errors()[0])


def _negative_number(error: Any) -> str:
    """Return a hint for a negative number, which looks like an option."""
    is_negative = re.match(r"-[\d.]", getattr(error, "option_name", None) or "")
    return "; write -- before a negative number, as in `… -- -0.25 ROUND`" if is_negative else ""


def _try_help(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"(try `{context.command_path} --help`)" if context is not None else ""


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"ldprecover {version('ldprecover')}")
        raise typer.Exit


@app.callback()
def ldprecover(
    ctx: typer.Context,
    *,
    version: Annotated[
        bool, Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, Option("--debug", help="Print the traceback of an error.")] = False,
) -> None:
    """Collect private statistics over HTTP, and stay honest when some users send fake reports.

    Example: ldprecover demo

    Example: ldprecover round open drinks --epsilon 1 --item tea --item coffee
    """
    ctx.obj.debug = debug
    if ctx.invoked_subcommand not in ("admin", "serve"):  # which load their own, if any
        _load_plugins(warn)


def _load_plugins(failed: Callable[[Any], None]) -> None:
    """Load all installed plugins, and call `failed` for each that fails to load."""
    groups = (f"ldprecover.{kind}" for kind in ("protocols", "methods", "attacks"))
    if any(entry_points(group=group) for group in groups):
        from ldprecover_attacker.plugins import load

        load(failed=failed)


def serve() -> None:
    """Run the server, which collects reports and computes results.

    It keeps everything in a SQLite file or a Postgres database, and ends on Ctrl-C. Each option is
    also an environment variable; the option has precedence.

    Example: ldprecover serve --port 8000 --database-url sqlite:///ldprecover.db
    """


def _serve_command() -> Any:
    from ldprecover_cli.serve import run_server, serve_options

    def serve_with(**options: Any) -> None:
        run_server(**options)

    serve_with.__doc__ = serve.__doc__
    serve_with.__signature__ = serve_options()  # type: ignore[attr-defined]
    single = typer.Typer(add_completion=False, context_settings={"help_option_names": _HELP})
    single.command("serve")(serve_with)
    return _click_command(single)


_START = "Start here"
for name, command in (
    ("demo", demo),
    ("class", classroom),
    ("serve", serve),
    ("survey", survey.survey),
    ("plan", plan.plan),
    ("audit", audit),
):
    app.command(name, rich_help_panel=_START, short_help=summary(command.__doc__ or ""))(command)
for group in (round, send, result, sim, file, admin, study):
    app.add_typer(group.app, rich_help_panel="Groups of commands")

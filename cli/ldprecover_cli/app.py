"""The command line: all commands, and the one place where an error becomes a line and an exit
code.
"""

import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ldprecover_cli import (
    analysis,
    crowds,
    document,
    export,
    key,
    ledger,
    merge,
    plan,
    recompute,
    report,
    reproduce,
    results,
    round,
    ticket,
    watch,
)
from ldprecover_cli.completion import load_plugins
from ldprecover_cli.demo import command as demo
from ldprecover_cli.errors import explain, whose_fault, with_notes
from ldprecover_cli.options import Json, RoundArgument
from ldprecover_cli.output import console, fail, note, plain, plain_table, print_json, warn
from ldprecover_client.transport_security import InsecureTransportWarning

_HELP = ["-h", "--help"]

_PANELS = {
    "Begin": ("demo", "serve"),
    "Collect": ("plan", "round", "ticket", "report", "ledger"),
    "Simulate and attack": ("simulate", "attack"),
    "Analyse": (
        "watch",
        "frequencies",
        "recover",
        "methods",
        "alarms",
        "suspects",
        "stats",
        "document",
        "export",
        "recompute",
        "merge",
    ),
    "Operate": ("key", "migrate", "check", "quarantine"),
    "Research": ("reproduce",),
}
"""The commands under their headings, in the order that the help has them."""


_WITHOUT_PLUGINS = ("key", "ledger", "migrate", "serve", "ticket")
"""Commands that load none: they need none, or, as the server, load what their settings name."""


@dataclass
class _State:
    """What the options before the command say."""

    debug: bool = False


class _Commands(TyperGroup):
    """All commands. `serve` gets its options from the server's settings once it is asked for, not
    before.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        order = {
            name: place
            for place, name in enumerate(name for names in _PANELS.values() for name in names)
        }
        return sorted(super().list_commands(ctx), key=lambda name: order.get(name, len(order)))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name == "serve":
            # Until the server takes signals itself, Ctrl-C ends it at once: raised in the midst of
            # an import or a finaliser, KeyboardInterrupt can be swallowed.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        return name, _serve_command() if name == "serve" else command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            note(with_notes("Interrupted.", stopped))
            raise typer.Exit(130) from None
        except SystemExit as stopped:  # by SIGTERM or SIGHUP
            if said := with_notes("", stopped):
                note(f"Ended.{said}")
            raise


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, context_settings={"help_option_names": _HELP}
)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; the last line on standard error says what went
    wrong.
    """
    state = _State()
    try:
        with _warnings_in_words():
            # Not standalone: otherwise typer would draw a box around each error and exit by itself.
            code = _command_line().main(
                arguments, prog_name="ldprecover", standalone_mode=False, obj=state
            )
    except typer.Abort:  # at a question
        note("Interrupted.")
        return 130
    except typer.TyperException as error:
        if said := error.format_message():  # empty where the help has been shown instead
            fail(f"{said}{_behind_a_command(error)} {_try_help(error)}")
        return error.exit_code
    except Exception as error:  # noqa: BLE001  the outermost boundary: a line for the person, always
        if state.debug:
            traceback.print_exc()
        explanation = explain(error)
        if explanation is None:
            text = f"{type(error).__name__}: {error}"
            fail(f"{text} ({whose_fault(error)}; `ldprecover --debug …` shows where)")
            return 1
        fail(explanation[0])
        return explanation[1]
    return code if isinstance(code, int) else 0


def _command_line() -> Any:
    """Return all commands as they are run, each under its heading."""
    command = get_command(app)
    for heading, names in _PANELS.items():
        for name in names:
            command.commands[name].rich_help_panel = heading  # type: ignore[attr-defined]
    _hide_types_of_flags(command)
    return command


def _hide_types_of_flags(command: Any) -> None:
    """Have the help say nothing of a type beside options that take no value, for all commands below
    one too.
    """
    for option in (
        *command.params,
        command.get_help_option(typer.Context(command, help_option_names=_HELP)),
    ):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for below in getattr(command, "commands", {}).values():
        _hide_types_of_flags(below)


@contextmanager
def _warnings_in_words() -> Iterator[None]:
    """Show a warning about keys and tickets as a line for the person, and every other as Python
    does.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", InsecureTransportWarning)
        as_python_does = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, InsecureTransportWarning):
                warn(message)
            else:
                as_python_does(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _behind_a_command(error: Any) -> str:
    """Return where an option of the commands belongs, for one that stands before the command."""
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", None)
    if context is not None and context.parent is None:
        commands = context.command.commands.values()
        if any(option in parameter.opts for command in commands for parameter in command.params):
            return f"; options of a command stand behind it, as in `ldprecover COMMAND {option} …`"
    return ""


def _try_help(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"(try `{context.command_path} --help`)" if context is not None else ""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ldprecover {version('ldprecover')}")
        raise typer.Exit


@app.callback()
def ldprecover(
    ctx: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Collect locally differentially private frequencies over HTTP, poison them, and recover them
    with LDPRecover.

    Example: ldprecover demo
    """
    ctx.obj.debug = debug
    if ctx.invoked_subcommand not in _WITHOUT_PLUGINS:
        load_plugins(warn)


demo.add_to(app)


@app.command()
def serve() -> None:
    """Serve rounds from a SQLite file or a Postgres database until Ctrl-C.

    Each option is also an environment variable; where both are given, the option wins.

    Example: ldprecover serve --port 8000 --database-url sqlite:///ldprecover.db
    """


@app.command()
def migrate(
    *,
    database_url: Annotated[
        str | None,
        typer.Option(
            envvar="LDPRECOVER_DATABASE_URL",
            help="The server's database; the same default as `serve`.",
        ),
    ] = None,
) -> None:
    """Bring a database to the schema of this version.

    A server on SQLite does this itself when it starts; on Postgres it serves no other schema.

    Example: ldprecover migrate --database-url postgresql+psycopg://ldprecover@db/ldprecover
    """
    from ldprecover_cli.serve import migrate_database

    revisions = migrate_database(database_url=database_url)
    note(
        f"The schema went through {', '.join(revisions)}."
        if revisions
        else "The schema is this version's already."
    )


@app.command()
def check(
    *,
    database_url: Annotated[
        str | None,
        typer.Option(
            envvar="LDPRECOVER_DATABASE_URL",
            help="The server's database; the same default as `serve`.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check that a database agrees with itself: counts with reports, reports with keys. Exit code 1
    if not.

    Every report that is kept is counted anew. Nothing is written, and the server may be running.

    Example: ldprecover check --database-url sqlite:///ldprecover.db
    """
    from ldprecover_cli.serve import check_database

    findings = check_database(database_url=database_url)
    if json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    elif findings:
        table = plain_table("round", "what", "expected", "found", numbers=2)
        for each in findings:
            table.add_row(
                plain(each.round), plain(each.what), f"{each.expected:,}", f"{each.found:,}"
            )
        console().print(table)
    else:
        note("Everything agrees.")
    if any(finding.fault for finding in findings):
        raise typer.Exit(1)


@app.command()
def quarantine(
    round: RoundArgument = "current",
    *,
    database_url: Annotated[
        str | None,
        typer.Option(
            envvar="LDPRECOVER_DATABASE_URL",
            help="The server's database; the same default as `serve`.",
        ),
    ] = None,
) -> None:
    """Print the reports that a round has set aside, a line of JSON for each hour and reason.

    They are read from the database. Nothing is written, and the server may be running.

    Example: ldprecover quarantine cities --database-url sqlite:///ldprecover.db
    """
    from ldprecover_cli.serve import set_aside

    for each in set_aside(round, database_url=database_url):
        print_json(each)


def _serve_command() -> Any:
    from ldprecover_cli.serve import run_server, serve_options

    def serve_with(**given: Any) -> None:
        run_server(**given)

    serve_with.__doc__ = serve.__doc__
    serve_with.__signature__ = serve_options()  # type: ignore[attr-defined]
    alone = typer.Typer(add_completion=False, context_settings={"help_option_names": _HELP})
    alone.command("serve")(serve_with)
    command = get_command(alone)
    _hide_types_of_flags(command)
    return command


plan.add_to(app)
report.add_to(app)
ledger.add_to(app)
crowds.add_to(app)
watch.add_to(app)
results.add_to(app)
analysis.add_to(app)
document.add_to(app)
export.add_to(app)
recompute.add_to(app)
merge.add_to(app)
reproduce.add_to(app)
app.add_typer(round.app, name="round")
app.add_typer(key.app, name="key")
app.add_typer(ticket.app, name="ticket")

"""The grammar of the command: groups, the round that a command reads, and former names."""

import inspect
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import wraps
from typing import Any

import typer
from typer.core import TyperGroup

from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import CURRENT, RoundOption

Command = Callable[..., None]

FORMER_NAMES = {
    "alarms": "result alarms",
    "attack": "sim attack",
    "certify": "result certify",
    "check": "admin check",
    "export": "round export",
    "frequencies": "result frequencies",
    "key": "admin key",
    "ledger": "send ledger",
    "methods": "result methods",
    "migrate": "admin migrate",
    "recompute": "file recompute",
    "recover": "result recover",
    "reproduce": "study paper",
    "simulate": "sim users",
    "suspects": "result suspects",
    "ticket mint": "admin ticket",
}
"""Names that commands had before they were in groups. They work, and no help shows them."""

_HINTS = FORMER_NAMES | {"report": "send value"}


class Group(TyperGroup):
    """A group of commands that suggests those of all groups for a word that it does not know."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            if not hasattr(error, "option_name"):  # an option in place of a command
                pairs = [*_commands(ctx.find_root().command), *_HINTS.items()]
                words = {word for word, _ in pairs}
                near = {args[0]} & words or get_close_matches(args[0], words, cutoff=0.75)
                paths = dict.fromkeys(path for word, path in pairs if word in near)
                hint = " or ".join(f"`ldprecover {path}`" for path in paths)
                error.message = f"there is no command {args[0]!r}"
                error.message += f"; did you mean {hint}?" if paths else ""
            raise


def _commands(command: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the last word of each command and group, and all its words."""
    for name, each in command.commands.items():
        yield name, f"{path}{name}"
        if hasattr(each, "commands"):
            yield from _commands(each, f"{path}{name} ")


def group(name: str, help: str, **commands: Command | typer.Typer) -> typer.Typer:
    """Return a group of commands by name. Its help lists the commands first, then the groups."""
    words = (word + _subcommands(command) for word, command in commands.items())
    short_help = f"{summary(help)}\n{', '.join(words)}"
    app = typer.Typer(name=name, cls=Group, help=help, short_help=short_help, no_args_is_help=True)
    for word, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=word)
        else:
            short_help = summary(command.__doc__ or "")
            app.command(word, short_help=short_help)(with_round_option(command))
    return app


def _subcommands(command: Command | typer.Typer) -> str:
    """Return the names of a group's commands after a space; nothing for a command."""
    if not isinstance(command, typer.Typer):
        return ""
    return f" {'/'.join(str(each.name) for each in command.registered_commands)}"


def summary(help: str) -> str:
    """Return the first paragraph of a help, which lists of commands show whole."""
    return " ".join(inspect.cleandoc(help).partition("\n\n")[0].split())


def with_round_option(command: Command) -> Command:
    """Return a command whose argument ROUND may be given as --round too; others unchanged."""
    signature = inspect.signature(command)
    if (argument := signature.parameters.get("round")) is None:
        return command

    @wraps(command)
    def with_round(*, round: str | None, round_option: str | None, **options: Any) -> None:
        if round is not None and round_option is not None:
            raise UsageError(f"name one round, either as {round} or as --round {round_option}")
        chosen = round_option if round is None else round
        if chosen is None:
            if argument.default is not CURRENT:
                raise UsageError("name the round: this command never takes the current one")
            chosen = CURRENT
        command(round=chosen, **options)

    parameters = [
        each.replace(default=None) if each is argument else each
        for each in signature.parameters.values()
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    option = inspect.Parameter("round_option", kind, default=None, annotation=RoundOption)
    with_round.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters, option]
    )
    return with_round

"""Groups of commands, and what lists of commands show."""

import inspect
from collections.abc import Callable

import typer

Command = Callable[..., None]


def group(name: str, help: str, **commands: Command | typer.Typer) -> typer.Typer:
    """Return a group of commands by name. Its help lists the commands first, then the groups."""
    words = (word + _subcommands(command) for word, command in commands.items())
    short_help = f"{summary(help)}\n{', '.join(words)}"
    app = typer.Typer(name=name, help=help, short_help=short_help, no_args_is_help=True)
    for word, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=word)
        else:
            short_help = summary(command.__doc__ or "")
            app.command(word, short_help=short_help)(command)
    return app


def _subcommands(command: Command | typer.Typer) -> str:
    """Return the names of a group's commands after a space; nothing for a command."""
    if not isinstance(command, typer.Typer):
        return ""
    return f" {'/'.join(str(each.name) for each in command.registered_commands)}"


def summary(help: str) -> str:
    """Return the first paragraph of a help, which lists of commands show whole."""
    return " ".join(inspect.cleandoc(help).partition("\n\n")[0].split())

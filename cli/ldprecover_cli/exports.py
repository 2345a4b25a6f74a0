"""`export`: a round as a file."""

from pathlib import Path
from typing import Annotated

import typer

from ldprecover_cli.export_files import write_export
from ldprecover_cli.options import DEFAULT_URL, Key, RoundArgument, Url, connected
from ldprecover_cli.output import note, print_json

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(export)


def export(
    round: RoundArgument = "current",
    *,
    output: Annotated[Path | None, typer.Option(help="Write it to this new file.", metavar="FILE")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a round's parameters, tally and checksum as one JSON file.

    Example: ldprecover export cities --output cities.json
    """
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.export(round)
    if output is None:
        print_json(answer)
        return
    write_export(output, answer)
    note(f"{answer['n']:,} reports of round {answer['name']} are in {output}; `ldprecover recompute` reads it")

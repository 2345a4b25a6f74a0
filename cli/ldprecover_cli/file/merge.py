"""`file merge`: exports of several deployments, added."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from ldprecover_cli.errors import UsageError
from ldprecover_cli.file.export_files import read_export, write_export
from ldprecover_cli.options import NewJsonFile
from ldprecover_cli.output import note, print_json


def merge(
    files: Annotated[
        list[Path],
        Argument(
            help="Two or more files of `ldprecover round export` or `merge`.", metavar="FILE..."
        ),
    ],
    *,
    output: NewJsonFile = None,
) -> None:
    """Add exported rounds of several deployments into one export.

    The rounds must have the same parameters and be distinct, also inside merged files.
    `ldprecover file recompute` reads the result as any export.

    Example: ldprecover file merge north.json south.json --output all.json
    """
    from ldprecover import ParameterError, RoundExport

    if len(files) < 2:
        raise UsageError("merge needs two or more files")
    try:
        merged = RoundExport.merge(
            [read_export(file) for file in files], called=[str(file) for file in files]
        )
    except ParameterError as error:
        raise UsageError(str(error)) from error
    if output is None:
        print_json(merged.to_dict())
        return
    write_export(output, merged.to_dict())
    note(
        f"{merged.tally.n:,} reports of {len(merged.merged)} rounds are in {output}; "
        "`ldprecover file recompute` reads it"
    )

"""Results for all items as a new CSV or Parquet file."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ldprecover_cli.errors import CommandError, UsageError, check_new, new_file

if TYPE_CHECKING:
    from ldprecover_interface.results import Columns


def _checked(path: Path | None) -> Path | None:
    """Return the path. Raises UsageError or CommandError unless the file can be written."""
    if path is None:
        return None
    if path.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--output takes a file that ends in .csv or .parquet, not {path}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise CommandError("Parquet needs pyarrow: pip install 'ldprecover[parquet]'")
    check_new(path)
    return path


TableFile = Annotated[
    Path | None,
    Option(
        "--output",
        "-o",
        help="A new file for all items: .csv, which spreadsheets open, or .parquet.",
        metavar="FILE",
        callback=_checked,  # before anything is computed
    ),
]


def columns_of(results: Sequence[Any], *beside: str) -> "Columns":
    """Return the columns of results one after the other, with these attributes of each result."""
    columns: Columns = {
        name: [getattr(each, name) for each in results for _ in each.items] for name in beside
    }
    for name in results[0].columns:
        columns[name] = [cell for each in results for cell in each.columns[name]]
    return columns


def write_table(path: Path, columns: "Columns") -> None:
    """Write columns; CSV is that of the server, after a byte order mark for spreadsheets."""
    with new_file(path) as text:
        file = text.buffer
        if path.suffix == ".csv":
            from ldprecover_interface.csv import to_csv

            file.write(b"\xef\xbb\xbf" + to_csv(list(columns), zip(*columns.values(), strict=True)))
            return
        import pyarrow as pa
        from pyarrow.parquet import write_table as write

        write(pa.table({name: list(column) for name, column in columns.items()}), file)

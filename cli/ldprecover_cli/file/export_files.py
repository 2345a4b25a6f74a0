"""Reads and checks export files; writes them atomically and never over an existing file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldprecover_cli.errors import UsageError, file_errors, new_file

if TYPE_CHECKING:
    from ldprecover import RoundExport

_MAX_BYTES = 64 << 20  # an export of 100,000 items, the maximum, takes a few MiB


def read_export(file: Path) -> "RoundExport":
    """Return the export in a file. Raises UsageError if it is missing or was changed."""
    from ldprecover import ParameterError, RoundExport

    try:
        with file_errors("read", file), file.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(
                f"cannot read {file}: it is larger than {_MAX_BYTES >> 20} MiB, the limit for "
                "exports"
            )
        return RoundExport.from_json(data)
    except ParameterError as error:
        raise UsageError(f"{file}: {error}") from error


def is_parquet(file: Path) -> bool:
    """Return whether the file begins as Parquet does. Raises UsageError if it cannot be read."""
    from ldprecover_client.report_files import SIGNATURE

    with file_errors("read", file), file.open("rb") as stream:
        return stream.read(len(SIGNATURE)) == SIGNATURE


def write_export(file: Path, export: dict[str, Any]) -> None:
    """Write an export to a new file in one step. Raises UsageError, also if the file exists."""
    import json

    with new_file(file) as stream:
        json.dump(export, stream, ensure_ascii=False, allow_nan=False)
        stream.write("\n")

"""Exports as files: read and checked; written whole, or not at all, and over nothing."""

import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldprecover_cli.errors import UsageError

if TYPE_CHECKING:
    from ldprecover import RoundExport

_BYTES = 64 << 20  # of a file: 100,000 items, the most that a round has, take a few


def read_export(file: Path) -> "RoundExport":
    """Return the export in a file, or from a pipe. Raises UsageError where there is none, or it was
    changed.
    """
    from ldprecover import ParameterError, RoundExport

    try:
        with file.open("rb") as given:
            kind = stat.S_IFMT(os.fstat(given.fileno()).st_mode)
            if kind not in (stat.S_IFREG, stat.S_IFIFO):
                raise UsageError(f"cannot read {file}: it is neither a file nor a pipe")
            data = given.read(_BYTES + 1)
        if len(data) > _BYTES:
            raise UsageError(
                f"cannot read {file}: it is larger than the {_BYTES >> 20} MiB that an export may "
                "have"
            )
        return RoundExport.from_json(data)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except ParameterError as error:
        raise UsageError(f"{file}: {error}") from error


def write_export(file: Path, export: dict[str, Any]) -> None:
    """Write an export to a new file, which nobody ever sees in half. Raises UsageError, also where
    a file is there.
    """
    import json

    written = file.with_name(
        f".{file.name}.{secrets.token_hex(8)}"
    )  # beside it: on the same file system
    try:
        try:
            with written.open("x", encoding="utf-8") as new:
                json.dump(export, new, ensure_ascii=False, allow_nan=False)
                new.write("\n")
                new.flush()
                os.fsync(new.fileno())
            try:
                os.link(
                    written, file
                )  # fails where a file has come meanwhile, as a rename would not
            except FileExistsError:
                raise
            except OSError:  # a file system without links
                file.open("x").close()
                written.replace(file)
        finally:
            written.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error

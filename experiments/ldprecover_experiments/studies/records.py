"""What made the results of a study: versions, platform and files."""

import hashlib
import platform
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ldprecover import ParameterError
from ldprecover.counting import backend
from ldprecover_experiments.simulation.tables import TextTable

T = TypeVar("T")


@cache
def environment() -> str:
    """Return the versions and the platform of this process; numba's if it counts."""
    numba = f"numba {version('numba')}" if backend() == "numba" else "no numba"
    versions = [f"{name} {version(name)}" for name in ("ldprecover", "numpy")]
    return ", ".join([*versions, numba, f"Python {platform.python_version()}", platform.platform()])


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_files(stem: Path, json: str, csv: str, tables: Mapping[str, TextTable]) -> None:
    """Write results as JSON and CSV, and tables, by what their names add to `stem`, for LaTeX."""
    Path(f"{stem}.json").write_text(f"{json}\n", encoding="utf-8")
    Path(f"{stem}.csv").write_text(csv, encoding="utf-8")
    for name, table in tables.items():
        Path(f"{stem}{name}.tex").write_text(table.latex(), encoding="utf-8")


def parsed(adapter: TypeAdapter[T], text: str | bytes) -> T:
    """Return results from their JSON. Raises ParameterError for anything else."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        where = f"{place}: " if place else ""
        raise ParameterError(
            f"these are not the results of a study: {where}{first['msg']}"
        ) from error


def module_hash(name: str) -> str | None:
    """Return the SHA-256 of the file of a "module:name", None of another name.

    Results of an earlier version of the file are not those of this one.
    """
    module, colon, _ = name.partition(":")
    file = Path(getattr(sys.modules.get(module), "__file__", None) or "")
    return sha256(file) if colon and file.is_file() else None  # <stdin> is no file

"""What made the results of a study: versions, platform and files."""

import hashlib
import platform
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from ldprecover.counting import backend


@cache
def environment() -> str:
    """Return the versions and the platform of this process; numba's if it counts."""
    numba = f"numba {version('numba')}" if backend() == "numba" else "no numba"
    versions = [f"{name} {version(name)}" for name in ("ldprecover", "numpy")]
    return ", ".join([*versions, numba, f"Python {platform.python_version()}", platform.platform()])


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def module_hash(name: str) -> str | None:
    """Return the SHA-256 of the file of a "module:name", None of another name.

    Results of an earlier version of the file are not those of this one.
    """
    module, colon, _ = name.partition(":")
    file = Path(getattr(sys.modules.get(module), "__file__", None) or "")
    return sha256(file) if colon and file.is_file() else None  # <stdin> is no file

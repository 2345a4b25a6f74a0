"""Tools that are no Python packages: `tests/tools.sh` installs them where it can."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path) -> str:
    """Return what a tool writes, both ways; skip the test where the tool is missing, fail it where
    the tool does.
    """
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed; tests/tools.sh says how")
    ended = subprocess.run(command, capture_output=True, text=True)
    written = ended.stdout + ended.stderr
    assert ended.returncode == 0, written
    return written

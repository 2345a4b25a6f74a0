"""Tools that are no Python packages: `tests/tools.sh` installs them where it can."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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


def compose_services(folder: Path, *command: str) -> dict[str, Any]:
    """Return the services that a compose tool reads in a folder, without settings."""
    if (
        shutil.which(command[0]) is None
        or subprocess.run([*command, "version"], capture_output=True).returncode
    ):
        pytest.skip(f"{' '.join(command)} is not installed")
    unset = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LDPRECOVER_", "COMPOSE_"))
    }
    ended = subprocess.run(
        [*command, "config"], cwd=folder, env=unset, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "variable is not set" not in ended.stderr
    services: dict[str, Any] = yaml.safe_load(ended.stdout)["services"]
    return services

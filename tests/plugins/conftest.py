"""A distribution of plugins, made of what the page shows and really installed, and processes that
see it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, Page
from tests.forked import start_python

PAGE = Page(ROOT / "docs" / "how-to" / "plugins.md")
MODULES = ("my_protocol", "my_method", "my_attack")

_OURS = os.environ.get("PYTHONPATH")  # before a test puts plugins there for a server

Install = Callable[[str, str, dict[str, str]], Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


def shown(start: str) -> str:
    """Return the one block of the page that begins so."""
    (found,) = [block.text for block in PAGE.blocks if block.text.startswith(start)]
    return found


@pytest.fixture(scope="session")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Build a project of these modules and install it into a folder of its own, which is
    returned.
    """

    def build(name: str, pyproject: str, modules: dict[str, str]) -> Path:
        folder = tmp_path_factory.mktemp(name)
        project, site = folder / "project", folder / "site"
        project.mkdir()
        (project / "pyproject.toml").write_text(pyproject)
        for module, text in modules.items():
            (project / f"{module}.py").write_text(text)
        options = (
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--disable-pip-version-check",
        )
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            *options,
            "--target",
            str(site),
            str(project),
        ]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        return site

    return build


@pytest.fixture(scope="session")
def site(install: Install) -> Path:
    """The folder in which the page's plugins are installed."""
    code = [block.text for block in PAGE.blocks if block.language == "python"]
    return install("shown", shown("[build-system]"), dict(zip(MODULES, code, strict=True)))


def python_path(*folders: Path) -> str:
    """Return PYTHONPATH with these folders first."""
    return os.pathsep.join([*map(str, folders), *filter(None, [_OURS])])


@pytest.fixture
def run(forking: None, tmp_path: Path) -> Run:
    """Run Python in a process of its own that sees these folders, in the test's folder."""

    def start(
        *arguments: str, sees: tuple[Path, ...] = (), code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value for name, value in os.environ.items() if not re.match("LDPRECOVER_", name)
        }
        environment = inherited | {"PYTHONPATH": python_path(*sees), "LDPRECOVER_KERNELS": "numpy"}
        process = start_python(*arguments, folder=tmp_path, environment=environment)
        out, err = process.communicate()
        ended = subprocess.CompletedProcess(arguments, process.wait(), out, err)
        assert ended.returncode == code, (arguments, ended.stdout, ended.stderr)
        return ended

    return start

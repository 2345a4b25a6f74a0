"""Plugins that the page shows, installed as a distribution, and processes that see them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import NewDatabase, ServerProcess
from tests.docs.markdown import ROOT, Page
from tests.forked import start_python

PAGE = Page(ROOT / "docs" / "how-to" / "plugins.md")
MODULES = ("my_protocol", "my_method", "my_attack")

_OURS = os.environ.get("PYTHONPATH")  # before a test puts plugins there for a server

Install = Callable[[str, str, dict[str, str]], Path]
Run = Callable[..., subprocess.CompletedProcess[str]]
StartWithPlugins = Callable[..., ServerProcess]


def shown(start: str) -> str:
    """Return the one block of the page that begins so."""
    (text,) = [block.text for block in PAGE.blocks if block.text.startswith(start)]
    return text


@pytest.fixture(scope="session")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Build a project of these modules, install it into a new folder and return the folder."""

    def build(name: str, pyproject: str, modules: dict[str, str]) -> Path:
        folder = tmp_path_factory.mktemp(name)
        project, site = folder / "project", folder / "site"
        project.mkdir()
        (project / "pyproject.toml").write_text(pyproject)
        for module, text in modules.items():
            (project / f"{module}.py").write_text(text)
        options = "-m pip install --quiet --no-deps --no-build-isolation --no-index --target"
        command = [sys.executable, *options.split(), str(site), str(project)]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        return site

    return build


@pytest.fixture(scope="session")
def site(install: Install) -> Path:
    """The folder in which the page's plugins are installed."""
    code = [block.text for block in PAGE.blocks if block.language == "python"]
    return install("shown", shown("[build-system]"), dict(zip(MODULES, code, strict=True)))


def write_plugins(folder: Path, groups: dict[str, str], module: str) -> Path:
    """Write a module `others` with these groups of entry points; return the folder to import."""
    site = folder / "site"
    information = site / "others-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    text = "".join(f"[ldprecover.{group}]\n{lines}\n" for group, lines in groups.items())
    (information / "entry_points.txt").write_text(text)
    (site / "others.py").write_text(module)
    return site


@pytest.fixture(scope="module")
def start_with_plugins(
    forking: None, tmp_path_factory: pytest.TempPathFactory, new_database: NewDatabase
) -> Iterator[StartWithPlugins]:
    """Start servers with these plugins of a folder; all end with the module."""
    with ExitStack() as stack:

        def start(site: Path, plugins: str, **settings: Any) -> ServerProcess:
            folder = tmp_path_factory.mktemp("server")
            url = stack.enter_context(new_database(folder))
            process = ServerProcess(
                folder, url, kernels="numpy", analyses=1, plugins=plugins, **settings
            )
            stack.callback(process.kill)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PYTHONPATH", python_path(site))
                process.start()
            return process

        yield start


def python_path(*folders: Path) -> str:
    """Return PYTHONPATH with these folders first."""
    return os.pathsep.join([*map(str, folders), *filter(None, [_OURS])])


@pytest.fixture
def run(forking: None, tmp_path: Path) -> Run:
    """Run Python in a separate process that sees these folders, in the test's folder."""

    def start(
        *arguments: str, sees: tuple[Path, ...] = (), code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value for name, value in os.environ.items() if not re.match("LDPRECOVER_", name)
        }
        environment = inherited | {"PYTHONPATH": python_path(*sees), "LDPRECOVER_KERNELS": "numpy"}
        environment["XDG_STATE_HOME"] = str(tmp_path / "state")
        process = start_python(*arguments, folder=tmp_path, environment=environment)
        out, err = process.communicate()
        ended = subprocess.CompletedProcess(arguments, process.wait(), out, err)
        assert ended.returncode == code, (arguments, ended.stdout, ended.stderr)
        return ended

    return start
